/* What the calls of the library need of one another. */
#ifndef KAFILA_CALLS_H
#define KAFILA_CALLS_H

#include <stdatomic.h>

#include "kafila_cpu.h"

enum { KC_DONE = 0, KC_NO_MEMORY = -1, KC_OUT_OF_RANGE = -2 };
/* Multiplications that are not worth waking a thread for. */
enum { KC_SMALL = 1 << 15 };

/* The kernels in use. */
extern const kc_kernels *kc_used;

/* Memory that is kept from call to call: for the call, and for each thread. Null where there is none. */
float *kc_shared_space(size_t floats);
int kc_reserve_for_threads(int64_t floats);
float *kc_thread_space(int thread);

/* Pieces of a space, one behind another. */
typedef struct {
    float *next;
} kc_pieces;

KC_INLINE size_t kc_rounded(int64_t floats) { return ((size_t)floats + 15) / 16 * 16; }

KC_INLINE float *kc_take(kc_pieces *p, int64_t floats) {
    float *piece = p->next;
    p->next += kc_rounded(floats);
    return piece;
}

/* Input as a matrix wants it; `rows` says which row of `from` each is, null: in order. */
size_t kc_arranged_size(const kc_matrix *matrix, int64_t count);
void kc_arrange_rows(const kc_matrix *matrix, const float *from, const int64_t *rows, int64_t count, float *to);
kc_product kc_product_of(const kc_matrix *matrix, const float *arranged, int64_t count, float *output);
void kc_run_products(const kc_product *products, int64_t count);

enum { KC_RMS_NORM, KC_LAYER_NORM, KC_ADD, KC_ACTIVATE }; /* KC_ACTIVATE + one of KC_SILU… */

/* One of these for each of some rows. */
typedef struct {
    const float *x, *weight, *bias;
    float *y;
    int64_t rows, width;
    float eps;
    int32_t kind;
    atomic_llong next;
} kc_row_work;

void kc_run_rows(kc_row_work work);

/* Find the angles for `length` positions, and then rotate rows of one head by the l-th of them. */
int kc_find_angles(const kc_rope *rope, int64_t offset, int64_t length);
void kc_rotate_row(const kc_rope *rope, int64_t l, const float *x, float *y, int64_t width);

int kc_attend_all(const kc_attention *task);

#endif
