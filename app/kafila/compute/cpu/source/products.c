/* Products of rows with matrices, cut in pieces for the threads. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

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
        if (first < end) kc_used->multiply(product, first, end, kc_thread_space(thread));
    }
}

void kc_run_products(const kc_product *products, int64_t count) {
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
    kc_run(do_products, &work, all > KC_SMALL);
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
    const int64_t stride = kc_used->stride(work->matrix), columns = work->matrix->columns;
    (void)thread;
    for (;;) {
        const int64_t i = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed);
        if (i >= work->count) return;
        const int64_t row = work->rows ? work->rows[i] : i;
        kc_used->arrange(work->matrix, work->from + row * columns, work->to + i * stride);
    }
}

void kc_arrange_rows(const kc_matrix *matrix, const float *from, const int64_t *rows, int64_t count, float *to) {
    arrange_work work = {matrix, from, rows, to, count, 0};
    kc_run(do_arrange, &work, count >= 8);
}

size_t kc_arranged_size(const kc_matrix *matrix, int64_t count) { return kc_rounded(kc_used->stride(matrix) * count); }

kc_product kc_product_of(const kc_matrix *matrix, const float *arranged, int64_t count, float *output) {
    return (kc_product){matrix, 0, arranged, kc_used->stride(matrix), count, output, NULL};
}

static int multiply_rows(const kc_matrix *matrix, const float *x, float *y, int64_t count) {
    float *arranged = kc_shared_space(kc_arranged_size(matrix, count));
    if (!arranged || kc_reserve_for_threads(KC_SCRATCH)) return KC_NO_MEMORY;
    kc_arrange_rows(matrix, x, NULL, count, arranged);
    const kc_product product = kc_product_of(matrix, arranged, count, y);
    kc_run_products(&product, 1);
    return KC_DONE;
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
    float *arranged;
} gather_lists;

/* The pairs by matrix, those of one matrix in the order given. Counts of products, or why not. */
static int64_t sort_pairs(const gather_lists *lists, const uint32_t *chosen, const int64_t *inputs, int64_t pairs,
                          const kc_matrix *matrix, float *y) {
    memset(lists->starts, 0, (size_t)(matrix->count + 1) * sizeof *lists->starts);
    for (int64_t i = 0; i < pairs; i++) {
        if (chosen[i] >= (uint64_t)matrix->count) return KC_OUT_OF_RANGE;
        lists->starts[chosen[i] + 1]++;
    }
    int64_t products = 0;
    for (int64_t which = 0; which < matrix->count; which++) {
        const int64_t start = lists->starts[which], count = lists->starts[which + 1];
        lists->starts[which + 1] += start;
        if (!count) continue;
        kc_product *product = &lists->products[products++];
        *product = kc_product_of(matrix, lists->arranged + start * kc_used->stride(matrix), count, y);
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
    float *arranged = kc_shared_space(kc_arranged_size(matrix, pairs));
    if (!arranged || kc_reserve_for_threads(KC_SCRATCH)) return KC_NO_MEMORY;
    const size_t numbers = (size_t)(matrix->count + 1 + 2 * pairs);
    int64_t *memory = malloc(numbers * sizeof *memory + (size_t)matrix->count * sizeof(kc_product));
    if (!memory) return KC_NO_MEMORY;
    const gather_lists lists = {memory, memory + matrix->count + 1, memory + matrix->count + 1 + pairs,
                                (kc_product *)(memory + numbers), arranged};
    const int64_t products = sort_pairs(&lists, chosen, inputs, pairs, matrix, y);
    if (products > 0) {
        kc_arrange_rows(matrix, x, lists.rows, pairs, arranged);
        kc_run_products(lists.products, products);
    }
    free(memory);
    return products < 0 ? (int)products : KC_DONE;
}

/* Row `inputs[i]` of x times matrix number `chosen[i]`, for each pair i. */
KC_API int kc_gather(const kc_matrix *matrix, const float *x, const uint32_t *chosen, const int64_t *inputs, float *y,
                     int64_t pairs) {
    kc_enter();
    const int result = gather_rows(matrix, x, chosen, inputs, y, pairs);
    kc_leave();
    return result;
}
