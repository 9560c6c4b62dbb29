/* What Python calls: each function does one operation, on all threads, and returns when it is done.
 *
 * One caller at a time; a second one waits. Functions return 0, or say why they did nothing.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kafila_cpu.h"

enum { DONE = 0, NO_MEMORY = -1, OUT_OF_RANGE = -2 };
/* Multiplications that are not worth waking a thread for. */
enum { SMALL = 1 << 15 };

static const kc_kernels *kernels = &kc_plain;

/* ---- Which kernels ---- */

static const kc_kernels *best_kernels(int most) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    const int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                       __builtin_cpu_supports("avx512vnni");
    if (most >= 2 && avx2 && avx512) return &kc_avx512;
    if (most >= 1 && avx2) return &kc_avx2;
#elif defined(__aarch64__)
    if (most >= 1) return &kc_neon;
#endif
    (void)most;
    return &kc_plain;
}

/* Take the best kernels up to a level (0: plain C), and give back their name. */
KC_API const char *kc_use_kernels(int most) {
    kernels = best_kernels(most);
    return kernels->name;
}

/* ---- Memory ---- */

typedef struct {
    float *start;
    size_t size; /* floats */
} space;

static space shared_space, thread_spaces[KC_MOST_THREADS];

static int reserve(space *s, size_t size) {
    if (size <= s->size) return DONE;
    free(s->start);
    s->start = NULL;
    s->size = 0;
    void *start;
    if (posix_memalign(&start, KC_ALIGN, size * sizeof(float))) return NO_MEMORY;
    s->start = start;
    s->size = size;
    return DONE;
}

static size_t rounded(int64_t floats) { return ((size_t)floats + 15) / 16 * 16; }

static int reserve_for_threads(int64_t size) {
    for (int thread = 0; thread < kc_threads(); thread++) {
        if (reserve(&thread_spaces[thread], (size_t)size)) return NO_MEMORY;
    }
    return DONE;
}

/* Pieces of the shared space, one behind another. */
typedef struct {
    float *next;
} pieces;

static float *take(pieces *p, int64_t floats) {
    float *piece = p->next;
    p->next += rounded(floats);
    return piece;
}

/* Give memory that was needed for long inputs back. */
KC_API void kc_release(void) {
    kc_enter();
    free(shared_space.start);
    shared_space = (space){NULL, 0};
    for (int thread = 0; thread < KC_MOST_THREADS; thread++) {
        free(thread_spaces[thread].start);
        thread_spaces[thread] = (space){NULL, 0};
    }
    kc_leave();
}

/* ---- Products ---- */

typedef struct {
    const kc_product *products;
    int64_t count;
    int64_t pieces; /* of the outputs of each product */
    atomic_llong next;
} product_work;

static void do_products(void *argument, int thread) {
    product_work *work = argument;
    for (;;) {
        const int64_t piece = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed);
        if (piece >= work->count * work->pieces) return;
        const kc_product *product = &work->products[piece / work->pieces];
        const int64_t rows = product->matrix->rows;
        const int64_t share = (rows + work->pieces * KC_TILE - 1) / (work->pieces * KC_TILE) * KC_TILE;
        const int64_t first = piece % work->pieces * share, end = first + share < rows ? first + share : rows;
        if (first < end) kernels->multiply(product, first, end, thread_spaces[thread].start);
    }
}

static void run_products(const kc_product *products, int64_t count) {
    int64_t most_rows = 0, all = 0;
    for (int64_t i = 0; i < count; i++) {
        const kc_matrix *m = products[i].matrix;
        most_rows = m->rows > most_rows ? m->rows : most_rows;
        all += m->rows * m->columns * products[i].count;
    }
    /* Small pieces, so that a thread that is held up does not hold up the others. */
    const int64_t tiles = (most_rows + KC_TILE - 1) / KC_TILE;
    const int64_t wanted = (8 * kc_threads() + count - 1) / count;
    product_work work = {products, count, tiles < wanted ? tiles : wanted, 0};
    kc_run(do_products, &work, all > SMALL);
}

typedef struct {
    const kc_matrix *matrix;
    const float *from;
    const int64_t *rows; /* which row of `from` each is; null: in order */
    float *to;
    int64_t count;
    atomic_llong next;
} arrange_work;

static void do_arrange(void *argument, int thread) {
    arrange_work *work = argument;
    const int64_t stride = kernels->stride(work->matrix), columns = work->matrix->columns;
    (void)thread;
    for (;;) {
        const int64_t i = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed);
        if (i >= work->count) return;
        const int64_t row = work->rows ? work->rows[i] : i;
        kernels->arrange(work->matrix, work->from + row * columns, work->to + i * stride);
    }
}

static void arrange_rows(const kc_matrix *matrix, const float *from, const int64_t *rows, int64_t count, float *to) {
    arrange_work work = {matrix, from, rows, to, count, 0};
    kc_run(do_arrange, &work, count >= 8);
}

static size_t arranged_size(const kc_matrix *matrix, int64_t count) { return rounded(kernels->stride(matrix) * count); }

static kc_product product_of(const kc_matrix *matrix, const float *arranged, int64_t count, float *output) {
    return (kc_product){matrix, 0, arranged, kernels->stride(matrix), count, output, NULL};
}

static int multiply_rows(const kc_matrix *matrix, const float *x, float *y, int64_t count) {
    if (reserve(&shared_space, arranged_size(matrix, count)) || reserve_for_threads(KC_SCRATCH)) return NO_MEMORY;
    arrange_rows(matrix, x, NULL, count, shared_space.start);
    const kc_product product = product_of(matrix, shared_space.start, count, y);
    run_products(&product, 1);
    return DONE;
}

/* `count` rows of input times a matrix. */
KC_API int kc_multiply(const kc_matrix *matrix, const float *x, float *y, int64_t count) {
    kc_enter();
    const int result = multiply_rows(matrix, x, y, count);
    kc_leave();
    return result;
}

/* What one call of gather needs beside its arrays. */
typedef struct {
    int64_t *starts, *order, *rows;
    kc_product *products;
} gather_lists;

/* The pairs by matrix, those of one matrix in the order given. Counts of products, or why not. */
static int64_t sort_pairs(const gather_lists *lists, const uint32_t *chosen, const int64_t *inputs, int64_t pairs,
                          const kc_matrix *matrix, float *y) {
    memset(lists->starts, 0, (size_t)(matrix->count + 1) * sizeof *lists->starts);
    for (int64_t i = 0; i < pairs; i++) {
        if (chosen[i] >= (uint64_t)matrix->count) return OUT_OF_RANGE;
        lists->starts[chosen[i] + 1]++;
    }
    int64_t products = 0;
    for (int64_t which = 0; which < matrix->count; which++) {
        const int64_t start = lists->starts[which], count = lists->starts[which + 1];
        lists->starts[which + 1] += start;
        if (!count) continue;
        kc_product *product = &lists->products[products++];
        *product = product_of(matrix, shared_space.start + start * kernels->stride(matrix), count, y);
        product->which = which;
        product->places = lists->order + start;
    }
    for (int64_t i = 0; i < pairs; i++) {
        const int64_t at = lists->starts[chosen[i]]++;
        lists->order[at] = i;
        lists->rows[at] = inputs[i];
    }
    return products;
}

static int gather_rows(const kc_matrix *matrix, const float *x, const uint32_t *chosen, const int64_t *inputs, float *y,
                       int64_t pairs) {
    if (reserve(&shared_space, arranged_size(matrix, pairs)) || reserve_for_threads(KC_SCRATCH)) return NO_MEMORY;
    const size_t numbers = (size_t)(matrix->count + 1 + 2 * pairs);
    int64_t *memory = malloc(numbers * sizeof *memory + (size_t)matrix->count * sizeof(kc_product));
    if (!memory) return NO_MEMORY;
    const gather_lists lists = {memory, memory + matrix->count + 1, memory + matrix->count + 1 + pairs,
                                (kc_product *)(memory + numbers)};
    const int64_t products = sort_pairs(&lists, chosen, inputs, pairs, matrix, y);
    if (products > 0) {
        arrange_rows(matrix, x, lists.rows, pairs, shared_space.start);
        run_products(lists.products, products);
    }
    free(memory);
    return products < 0 ? (int)products : DONE;
}

/* Row `inputs[i]` of x times matrix number `chosen[i]`, for each pair i. */
KC_API int kc_gather(const kc_matrix *matrix, const float *x, const uint32_t *chosen, const int64_t *inputs, float *y,
                     int64_t pairs) {
    kc_enter();
    const int result = gather_rows(matrix, x, chosen, inputs, y, pairs);
    kc_leave();
    return result;
}

/* ---- Row by row: norms and activations ---- */

typedef struct {
    const float *x, *weight, *bias;
    float *y;
    int64_t rows, width;
    float eps;
    int32_t kind;
    atomic_llong next;
} row_work;

enum { RMS_NORM, LAYER_NORM, ADD, ACTIVATE }; /* ACTIVATE + one of KC_SILU… */

static void do_rows(void *argument, int thread) {
    row_work *w = argument;
    (void)thread;
    for (;;) {
        const int64_t row = atomic_fetch_add_explicit(&w->next, 1, memory_order_relaxed);
        if (row >= w->rows) return;
        const float *x = w->x + row * w->width, *other = w->weight + (w->weight ? row * w->width : 0);
        float *y = w->y + row * w->width;
        if (w->kind == RMS_NORM) kernels->rms_norm(x, w->weight, y, w->width, w->eps);
        else if (w->kind == LAYER_NORM) kernels->layer_norm(x, w->weight, w->bias, y, w->width, w->eps);
        else if (w->kind == ADD) kernels->add(x, other, y, w->width);
        else kernels->activate(w->kind - ACTIVATE, x, other, y, w->width);
    }
}

static void run_rows(row_work work) {
    atomic_init(&work.next, 0);
    kc_run(do_rows, &work, work.rows > 1 && work.rows * work.width > SMALL);
}

KC_API void kc_rms_norm(const float *x, const float *weight, float *y, int64_t rows, int64_t width, float eps) {
    kc_enter();
    run_rows((row_work){x, weight, NULL, y, rows, width, eps, RMS_NORM});
    kc_leave();
}

KC_API void kc_layer_norm(const float *x, const float *weight, const float *bias, float *y, int64_t rows, int64_t width,
                          float eps) {
    kc_enter();
    run_rows((row_work){x, weight, bias, y, rows, width, eps, LAYER_NORM});
    kc_leave();
}

/* y = f(x), or f(x) · factor where there is one. */
KC_API void kc_activate(int32_t kind, const float *x, const float *factor, float *y, int64_t rows, int64_t width) {
    kc_enter();
    run_rows((row_work){x, factor, NULL, y, rows, width, 0, ACTIVATE + kind});
    kc_leave();
}

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

static int find_angles(const kc_rope *rope, int64_t offset, int64_t length) {
    const int64_t half = rope->dims / 2;
    float speeds[MOST_ANGLES / 64];
    if (half > MOST_ANGLES / 64) return OUT_OF_RANGE;
    find_speeds(rope, speeds, half);
    const size_t bytes = (size_t)half * sizeof(float);
    if (angles.half == half && angles.length == length && angles.offset == offset && angles.scale == rope->scale &&
        angles.size && !memcmp(angles.speeds, speeds, bytes)) {
        return DONE;
    }
    if (angles.size < half * length + half) {
        free(angles.speeds);
        angles.size = 0;
        const int64_t size = half * length + half;
        angles.speeds = malloc((size_t)(2 * size + half) * sizeof(float));
        if (!angles.speeds) return NO_MEMORY;
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
    return DONE;
}

static void rotate(const kc_rope *rope, int64_t l, const float *x, float *y, int64_t width) {
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
    int result = DONE;
    kc_enter();
    const int64_t heads = shape[1], length = shape[2], width = shape[3];
    for (int64_t b = 0; b < shape[0] && !result; b++) {
        result = find_angles(rope, offsets[b], length);
        for (int64_t h = 0; h < heads && !result; h++) {
            for (int64_t l = 0; l < length; l++) {
                rotate(rope, l, x + b * steps[0] + h * steps[1] + l * steps[2], y + ((b * heads + h) * length + l) * width,
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
        kernels->attend(task, &share, thread_spaces[thread].start);
    }
}

static int attend(const kc_attention *task) {
    const int64_t scratch = kc_attend_scratch(task->keys_length);
    if (reserve_for_threads(scratch > KC_SCRATCH ? scratch : KC_SCRATCH)) return NO_MEMORY;
    attend_work work = {.task = task, .heads = 1, .rows = 8, .next = 0};
    const int64_t sharing = task->heads / task->key_heads;
    /* A single row of each head: heads that look at the same keys go together, if that leaves enough parts. */
    if (task->length < 4 && task->batch * task->key_heads >= 4 * kc_threads()) work.heads = sharing;
    work.head_parts = task->heads / work.heads;
    work.row_parts = (task->length + work.rows - 1) / work.rows;
    kc_run(do_attend, &work, task->batch * task->heads * task->length * task->keys_length * task->width > SMALL);
    return DONE;
}

KC_API int kc_attend(const kc_attention *task) {
    kc_enter();
    const int result = attend(task);
    kc_leave();
    return result;
}

/* ---- Both halves of a plain transformer block, before and behind its cache ---- */

typedef struct {
    kc_matrix query, key, value, output, gate, up, down;
    const float *first_norm, *second_norm; /* of the block's input, and of the attention's result */
    const float *query_norm, *key_norm;    /* of each head; may be null */
    kc_rope rope;
    int64_t heads, key_heads, width;
    float eps, head_eps;
    int32_t kind;
} kc_block;

/* Products of the same rows with several matrices; `space` is for the arranged rows. */
static void multiply_all(const kc_matrix *const *matrices, float *const *outputs, int n, const float *x, int64_t rows,
                         float *space) {
    kc_product products[3];
    for (int i = 0; i < n; i++) {
        const int same = i && kernels->arrangement(matrices[i]) == kernels->arrangement(matrices[0]);
        float *arranged = same ? (float *)products[0].input : space;
        if (!same) {
            arrange_rows(matrices[i], x, NULL, rows, arranged);
            space += arranged_size(matrices[i], rows);
        }
        products[i] = product_of(matrices[i], arranged, rows, outputs[i]);
    }
    run_products(products, n);
}

typedef struct {
    const kc_block *block;
    const float *from;
    const float *norm;
    float *to;
    int64_t batch, length, heads;
    int rotated;
} heads_work;

/* From rows of all heads to (batch, heads, length, width), with norm and rotation. */
static void place_heads(const kc_block *block, const heads_work *w) {
    const int64_t width = block->width;
    for (int64_t l = 0; l < w->length; l++) {
        for (int64_t h = 0; h < w->heads; h++) {
            const float *from = w->from + ((w->batch * w->length + l) * w->heads + h) * width;
            float *to = w->to + ((w->batch * w->heads + h) * w->length + l) * width;
            if (w->norm) {
                kernels->rms_norm(from, w->norm, to, width, block->head_eps);
                from = to;
            }
            if (w->rotated) rotate(&block->rope, l, from, to, width);
            else if (from != to) memcpy(to, from, (size_t)width * sizeof *to);
        }
    }
}

static int begin_block(const kc_block *block, const float *x, int64_t batch, int64_t length, const int64_t *offsets,
                       float *const *results) {
    const kc_matrix *matrices[3] = {&block->query, &block->key, &block->value};
    const int64_t rows = batch * length, hidden = block->query.columns;
    size_t size = rounded(rows * hidden);
    for (int i = 0; i < 3; i++) size += rounded(rows * matrices[i]->rows) + arranged_size(matrices[i], rows);
    if (reserve(&shared_space, size) || reserve_for_threads(KC_SCRATCH)) return NO_MEMORY;
    pieces p = {shared_space.start};
    float *normed = take(&p, rows * hidden), *outputs[3];
    for (int i = 0; i < 3; i++) outputs[i] = take(&p, rows * matrices[i]->rows);
    run_rows((row_work){x, block->first_norm, NULL, normed, rows, hidden, block->eps, RMS_NORM});
    multiply_all(matrices, outputs, 3, normed, rows, p.next);
    for (int64_t b = 0; b < batch; b++) {
        const int result = find_angles(&block->rope, offsets[b], length);
        if (result) return result;
        place_heads(block, &(heads_work){block, outputs[0], block->query_norm, results[0], b, length, block->heads, 1});
        place_heads(block, &(heads_work){block, outputs[1], block->key_norm, results[1], b, length, block->key_heads, 1});
        place_heads(block, &(heads_work){block, outputs[2], NULL, results[2], b, length, block->key_heads, 0});
    }
    return DONE;
}

/* Norm, queries, keys and values, each (batch, heads, length, width), turned to their positions. */
KC_API int kc_begin_block(const kc_block *block, const float *x, int64_t batch, int64_t length, const int64_t *offsets,
                          float *queries, float *keys, float *values) {
    float *results[3] = {queries, keys, values};
    kc_enter();
    const int result = begin_block(block, x, batch, length, offsets, results);
    kc_leave();
    return result;
}

static int finish_block(const kc_block *block, kc_attention *attention, const float *x, float *y) {
    const int64_t rows = attention->batch * attention->length, hidden = block->output.rows, inner = block->gate.rows;
    const size_t arranged = arranged_size(&block->output, rows) + arranged_size(&block->gate, rows) +
                            arranged_size(&block->up, rows) + arranged_size(&block->down, rows);
    const size_t size = rounded(rows * block->output.columns) + 2 * rounded(rows * hidden) + 2 * rounded(rows * inner);
    if (reserve(&shared_space, size + arranged)) return NO_MEMORY;
    pieces p = {shared_space.start};
    float *mixed = take(&p, rows * block->output.columns), *state = take(&p, rows * hidden);
    float *normed = take(&p, rows * hidden), *gate = take(&p, rows * inner), *up = take(&p, rows * inner);
    attention->output = mixed;
    if (attend(attention)) return NO_MEMORY;
    const kc_matrix *output[1] = {&block->output}, *inside[2] = {&block->gate, &block->up}, *down[1] = {&block->down};
    multiply_all(output, &state, 1, mixed, rows, p.next);
    run_rows((row_work){x, state, NULL, state, rows, hidden, 0, ADD});
    run_rows((row_work){state, block->second_norm, NULL, normed, rows, hidden, block->eps, RMS_NORM});
    multiply_all(inside, (float *[2]){gate, up}, 2, normed, rows, p.next);
    run_rows((row_work){gate, up, NULL, gate, rows, inner, 0, ACTIVATE + block->kind});
    multiply_all(down, &y, 1, gate, rows, p.next);
    run_rows((row_work){state, y, NULL, y, rows, hidden, 0, ADD});
    return DONE;
}

/* Attention, output, and the feed-forward part, with what is added to the block's input x. */
KC_API int kc_finish_block(const kc_block *block, kc_attention *attention, const float *x, float *y) {
    kc_enter();
    const int result = finish_block(block, attention, x, y);
    kc_leave();
    return result;
}

/* ---- Measuring ---- */

enum { READ_AT_ONCE = 1 << 17 };

typedef struct {
    const uint64_t *from;
    int64_t count;
    atomic_llong next;
    atomic_ullong sum;
} read_work;

static void do_read(void *argument, int thread) {
    read_work *work = argument;
    uint64_t sums[8] = {0};
    (void)thread;
    for (;;) {
        const int64_t first = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed) * READ_AT_ONCE;
        const int64_t end = first + READ_AT_ONCE < work->count ? first + READ_AT_ONCE : work->count / 8 * 8;
        if (first >= end) break;
        for (int64_t i = first; i < end; i += 8) {
            for (int j = 0; j < 8; j++) sums[j] += work->from[i + j];
        }
    }
    for (int j = 0; j < 8; j++) atomic_fetch_add(&work->sum, sums[j]);
}

/* Read so many bytes of memory on all threads, and nothing else. */
KC_API uint64_t kc_read(const void *from, int64_t bytes) {
    read_work work = {.from = from, .count = bytes / 8};
    kc_enter();
    kc_run(do_read, &work, 1);
    kc_leave();
    return atomic_load(&work.sum);
}
