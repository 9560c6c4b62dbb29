/* Plain transformer blocks: both halves, before and behind a cache; and several with theirs. */
#include <string.h>

#include "calls.h"

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
        const int same = i && kc_used->arrangement(matrices[i]) == kc_used->arrangement(matrices[0]);
        float *arranged = same ? (float *)products[0].input : space;
        if (!same) {
            kc_arrange_rows(matrices[i], x, NULL, rows, arranged);
            space += kc_arranged_size(matrices[i], rows);
        }
        products[i] = kc_product_of(matrices[i], arranged, rows, outputs[i]);
    }
    kc_run_products(products, n);
}

/* Queries, keys or values as attention reads them, each with its steps between batches and heads; rows of
 * a head lie one behind another. */
typedef struct {
    float *to;
    int64_t batch_step, head_step;
} heads_place;

typedef struct {
    const float *from; /* rows of all heads */
    const float *norm;
    heads_place place;
    int64_t length, heads;
    int rotated;
} heads_work;

/* The heads of one batch, with norm and rotation. */
static void place_heads(const kc_block *block, const heads_work *w, int64_t batch) {
    const int64_t width = block->width;
    for (int64_t l = 0; l < w->length; l++) {
        for (int64_t h = 0; h < w->heads; h++) {
            const float *from = w->from + ((batch * w->length + l) * w->heads + h) * width;
            float *to = w->place.to + batch * w->place.batch_step + h * w->place.head_step + l * width;
            if (w->norm) {
                kc_used->rms_norm(from, w->norm, to, width, block->head_eps);
                from = to;
            }
            if (w->rotated) kc_rotate_row(&block->rope, l, from, to, width);
            else if (from != to) memcpy(to, from, (size_t)width * sizeof *to);
        }
    }
}

static size_t begin_size(const kc_block *block, int64_t rows) {
    const kc_matrix *matrices[3] = {&block->query, &block->key, &block->value};
    size_t size = kc_rounded(rows * block->query.columns);
    for (int i = 0; i < 3; i++) size += kc_rounded(rows * matrices[i]->rows) + kc_arranged_size(matrices[i], rows);
    return size;
}

static int begin_block(const kc_block *block, const float *x, int64_t batch, int64_t length, const int64_t *offsets,
                       const heads_place *places, float *space) {
    const kc_matrix *matrices[3] = {&block->query, &block->key, &block->value};
    const int64_t rows = batch * length, hidden = block->query.columns;
    kc_pieces p = {space};
    float *normed = kc_take(&p, rows * hidden), *outputs[3];
    for (int i = 0; i < 3; i++) outputs[i] = kc_take(&p, rows * matrices[i]->rows);
    kc_run_rows((kc_row_work){x, block->first_norm, NULL, normed, rows, hidden, block->eps, KC_RMS_NORM});
    multiply_all(matrices, outputs, 3, normed, rows, p.next);
    for (int64_t b = 0; b < batch; b++) {
        const int result = kc_find_angles(&block->rope, offsets[b], length);
        if (result) return result;
        place_heads(block, &(heads_work){outputs[0], block->query_norm, places[0], length, block->heads, 1}, b);
        place_heads(block, &(heads_work){outputs[1], block->key_norm, places[1], length, block->key_heads, 1}, b);
        place_heads(block, &(heads_work){outputs[2], NULL, places[2], length, block->key_heads, 0}, b);
    }
    return KC_DONE;
}

/* Heads in one piece, with room for so many rows each. */
static heads_place in_one_piece(float *to, int64_t heads, int64_t rows, int64_t width) {
    return (heads_place){to, heads * rows * width, rows * width};
}

/* Norm, queries, keys and values, each (batch, heads, length, width), turned to their positions. */
KC_API int kc_begin_block(const kc_block *block, const float *x, int64_t batch, int64_t length, const int64_t *offsets,
                          float *queries, float *keys, float *values) {
    const heads_place places[3] = {in_one_piece(queries, block->heads, length, block->width),
                                   in_one_piece(keys, block->key_heads, length, block->width),
                                   in_one_piece(values, block->key_heads, length, block->width)};
    int result = KC_NO_MEMORY;
    kc_enter();
    float *space = kc_shared_space(begin_size(block, batch * length));
    if (space && !kc_reserve_for_threads(KC_SCRATCH)) {
        result = begin_block(block, x, batch, length, offsets, places, space);
    }
    kc_leave();
    return result;
}

static size_t finish_size(const kc_block *block, int64_t rows) {
    const int64_t hidden = block->output.rows, inner = block->gate.rows;
    const size_t arranged = kc_arranged_size(&block->output, rows) + kc_arranged_size(&block->gate, rows) +
                            kc_arranged_size(&block->up, rows) + kc_arranged_size(&block->down, rows);
    return kc_rounded(rows * block->output.columns) + 2 * kc_rounded(rows * hidden) + 2 * kc_rounded(rows * inner) + arranged;
}

/* y may be x. */
static int finish_block(const kc_block *block, kc_attention *attention, const float *x, float *y, float *space) {
    const int64_t rows = attention->batch * attention->length, hidden = block->output.rows, inner = block->gate.rows;
    kc_pieces p = {space};
    float *mixed = kc_take(&p, rows * block->output.columns), *state = kc_take(&p, rows * hidden);
    float *normed = kc_take(&p, rows * hidden), *gate = kc_take(&p, rows * inner), *up = kc_take(&p, rows * inner);
    attention->output = mixed;
    if (kc_attend_all(attention)) return KC_NO_MEMORY;
    const kc_matrix *output[1] = {&block->output}, *inside[2] = {&block->gate, &block->up}, *down[1] = {&block->down};
    multiply_all(output, &state, 1, mixed, rows, p.next);
    kc_run_rows((kc_row_work){x, state, NULL, state, rows, hidden, 0, KC_ADD});
    kc_run_rows((kc_row_work){state, block->second_norm, NULL, normed, rows, hidden, block->eps, KC_RMS_NORM});
    multiply_all(inside, (float *[2]){gate, up}, 2, normed, rows, p.next);
    kc_run_rows((kc_row_work){gate, up, NULL, gate, rows, inner, 0, KC_ACTIVATE + block->kind});
    multiply_all(down, &y, 1, gate, rows, p.next);
    kc_run_rows((kc_row_work){state, y, NULL, y, rows, hidden, 0, KC_ADD});
    return KC_DONE;
}

/* Attention, output, and the feed-forward part, with what is added to the block's input x. */
KC_API int kc_finish_block(const kc_block *block, kc_attention *attention, const float *x, float *y) {
    int result = KC_NO_MEMORY;
    kc_enter();
    float *space = kc_shared_space(finish_size(block, attention->batch * attention->length));
    if (space) result = finish_block(block, attention, x, y, space);
    kc_leave();
    return result;
}

/* A block, and the cache of one sequence or of several of the same length: keys and values, each
 * (batch, heads, room, width). */
typedef struct {
    const kc_block *block;
    float *keys, *values;
    int64_t room;
} kc_step;

/* What all blocks of a call have in common. */
typedef struct {
    int64_t batch, length, offset; /* rows of each sequence, and how many are in the caches */
    float scale;
    int32_t causal;
} kc_rows;

static int run_block(const kc_step *step, const kc_rows *rows, const int64_t *offsets, const float *x, float *y,
                     float *queries, float *space) {
    const kc_block *block = step->block;
    const int64_t width = block->width, seen = rows->offset + rows->length;
    const int64_t new = rows->offset * width, key_step = step->room * width;
    const heads_place places[3] = {in_one_piece(queries, block->heads, rows->length, width),
                                   in_one_piece(step->keys + new, block->key_heads, step->room, width),
                                   in_one_piece(step->values + new, block->key_heads, step->room, width)};
    const int result = begin_block(block, x, rows->batch, rows->length, offsets, places, space);
    if (result) return result;
    kc_attention attention = {
        .queries = queries,
        .keys = step->keys,
        .values = step->values,
        .batch = rows->batch,
        .heads = block->heads,
        .key_heads = block->key_heads,
        .length = rows->length,
        .keys_length = seen,
        .width = width,
        .value_width = width,
        .query_strides = {places[0].batch_step, places[0].head_step, width},
        .key_strides = {places[1].batch_step, key_step, width},
        .value_strides = {places[2].batch_step, key_step, width},
        .scale = rows->scale,
        .causal = rows->causal,
    };
    return finish_block(block, &attention, x, y, space);
}

static int run_blocks(const kc_step *steps, int64_t count, const kc_rows *rows, const float *x, float *y) {
    const int64_t all = rows->batch * rows->length;
    size_t queries = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        const kc_block *block = steps[i].block;
        const size_t needed[3] = {kc_rounded(all * block->heads * block->width), begin_size(block, all), finish_size(block, all)};
        queries = needed[0] > queries ? needed[0] : queries;
        for (int half = 1; half < 3; half++) size = needed[half] > size ? needed[half] : size;
    }
    const size_t offsets = kc_rounded(2 * rows->batch);
    float *space = kc_shared_space(offsets + queries + size);
    if (!space || kc_reserve_for_threads(KC_SCRATCH)) return KC_NO_MEMORY;
    int64_t *positions = (int64_t *)space;
    for (int64_t b = 0; b < rows->batch; b++) positions[b] = rows->offset;
    space += offsets;
    int result = KC_DONE;
    for (int64_t i = 0; i < count && !result; i++) {
        result = run_block(&steps[i], rows, positions, i ? y : x, y, space, space + queries);
    }
    return result;
}

/* One block after another, each with its cache, which gets the new keys and values. */
KC_API int kc_run_blocks(const kc_step *steps, int64_t count, const kc_rows *rows, const float *x, float *y) {
    kc_enter();
    const int result = run_blocks(steps, count, rows, x, y);
    kc_leave();
    return result;
}
