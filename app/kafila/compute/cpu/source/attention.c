/* Rotation by position, and attention. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

/* ---- Rotation by position ---- */

enum { MOST_ANGLES = 1 << 16 };

/* Cosines and sines of the last call: the blocks of a model ask for the same ones in turn. */
static struct {
    float *cosines, *sines, *speeds;
    int64_t size, half, length, offset;
    float scale;
} angles;

static void find_speeds(const kc_rope *rope, float *speeds, int64_t half) {
    const float step = rope->periods ? 0.0f : (float)(log((double)rope->base) / (double)half);
    for (int64_t i = 0; i < half; i++) speeds[i] = rope->periods ? 1.0f / rope->periods[i] : expf(-(float)i * step);
}

int kc_find_angles(const kc_rope *rope, int64_t offset, int64_t length) {
    const int64_t half = rope->dims / 2;
    float speeds[MOST_ANGLES / 64];
    if (half > MOST_ANGLES / 64) return KC_OUT_OF_RANGE;
    find_speeds(rope, speeds, half);
    const size_t bytes = (size_t)half * sizeof(float);
    if (angles.half == half && angles.length == length && angles.offset == offset && angles.scale == rope->scale &&
        angles.size && !memcmp(angles.speeds, speeds, bytes)) {
        return KC_DONE;
    }
    if (angles.size < half * length + half) {
        free(angles.speeds);
        angles.size = 0;
        const int64_t size = half * length + half;
        angles.speeds = malloc((size_t)(2 * size + half) * sizeof(float));
        if (!angles.speeds) return KC_NO_MEMORY;
        angles.size = size;
    }
    angles.cosines = angles.speeds + half;
    angles.sines = angles.cosines + half * length;
    angles.half = 0; /* Not to be found half done. */
    memcpy(angles.speeds, speeds, bytes);
    for (int64_t l = 0; l < length; l++) {
        const float position = (float)(offset + l) * rope->scale;
        for (int64_t i = 0; i < half; i++) {
            angles.cosines[l * half + i] = cosf(position * speeds[i]);
            angles.sines[l * half + i] = sinf(position * speeds[i]);
        }
    }
    angles.half = half;
    angles.length = length;
    angles.offset = offset;
    angles.scale = rope->scale;
    return KC_DONE;
}

void kc_rotate_row(const kc_rope *rope, int64_t l, const float *x, float *y, int64_t width) {
    const int64_t half = rope->dims / 2;
    const float *c = angles.cosines + l * half, *s = angles.sines + l * half;
    for (int64_t i = 0; i < half; i++) {
        const int64_t at = rope->interleaved ? 2 * i : i, other = rope->interleaved ? at + 1 : at + half;
        const float a = x[at], b = x[other];
        y[at] = a * c[i] - b * s[i];
        y[other] = a * s[i] + b * c[i];
    }
    if (y != x) memcpy(y + rope->dims, x + rope->dims, (size_t)(width - rope->dims) * sizeof *y);
}

/* x (batch, heads, length, width) with any steps, into y in one piece; each batch has its offset. */
KC_API int kc_rotate(const kc_rope *rope, const float *x, float *y, const int64_t *shape, const int64_t *steps,
                     const int64_t *offsets) {
    int result = KC_DONE;
    kc_enter();
    const int64_t heads = shape[1], length = shape[2], width = shape[3];
    for (int64_t b = 0; b < shape[0] && !result; b++) {
        result = kc_find_angles(rope, offsets[b], length);
        for (int64_t h = 0; h < heads && !result; h++) {
            for (int64_t l = 0; l < length; l++) {
                kc_rotate_row(rope, l, x + b * steps[0] + h * steps[1] + l * steps[2], y + ((b * heads + h) * length + l) * width,
                       width);
            }
        }
    }
    kc_leave();
    return result;
}

/* ---- Attention ---- */

typedef struct {
    const kc_attention *task;
    int64_t heads, rows, head_parts, row_parts;
    atomic_llong next;
} attend_work;

static void do_attend(void *argument, int thread) {
    attend_work *work = argument;
    const kc_attention *task = work->task;
    for (;;) {
        const int64_t part = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed);
        if (part >= task->batch * work->head_parts * work->row_parts) return;
        kc_share share = {.batch = part / (work->head_parts * work->row_parts), .heads = work->heads};
        share.head = part / work->row_parts % work->head_parts * work->heads;
        share.row = part % work->row_parts * work->rows;
        share.rows = task->length - share.row < work->rows ? task->length - share.row : work->rows;
        kc_used->attend(task, &share, kc_thread_space(thread));
    }
}

int kc_attend_all(const kc_attention *task) {
    const int64_t scratch = kc_attend_scratch(task->keys_length);
    if (kc_reserve_for_threads(scratch > KC_SCRATCH ? scratch : KC_SCRATCH)) return KC_NO_MEMORY;
    attend_work work = {.task = task, .heads = 1, .rows = 8, .next = 0};
    const int64_t sharing = task->heads / task->key_heads;
    /* A single row of each head: heads that look at the same keys go together, if that leaves enough parts. */
    if (task->length < 4 && task->batch * task->key_heads >= 4 * kc_threads()) work.heads = sharing;
    work.head_parts = task->heads / work.heads;
    work.row_parts = (task->length + work.rows - 1) / work.rows;
    kc_run(do_attend, &work, task->batch * task->heads * task->length * task->keys_length * task->width > KC_SMALL);
    return KC_DONE;
}

KC_API int kc_attend(const kc_attention *task) {
    kc_enter();
    const int result = kc_attend_all(task);
    kc_leave();
    return result;
}
