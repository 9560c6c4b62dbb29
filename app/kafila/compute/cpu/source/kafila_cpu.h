/* Kafila's arithmetic on processors: what the parts of the library share.
 *
 * All arithmetic is in float32. Weights are read in the format in which they are stored, a few
 * rows at a time, and become float32 on the way to the multiplication. Every output element is
 * the sum of the same products in the same order, however many rows are computed together, so a
 * batch gives each row exactly what it gets alone.
 */
#ifndef KAFILA_CPU_H
#define KAFILA_CPU_H

#include <stddef.h>
#include <stdint.h>

#define KC_API __attribute__((visibility("default")))
#define KC_INLINE static inline __attribute__((always_inline))
#define KC_RESTRICT __restrict__

/* Element types of dense weights, and of scales and biases. */
enum { KC_FLOAT32 = 0, KC_FLOAT16 = 1, KC_BFLOAT16 = 2 };

/* How the weights of a matrix are stored. */
enum {
    KC_DENSE = 0,  /* plain elements */
    KC_AFFINE = 1, /* `bits` each; scale and bias per group, of the element type */
    KC_MXFP4 = 2,  /* 4-bit floats; one power of two per group of 32 */
    KC_MXFP8 = 3   /* 8-bit floats (e4m3); one power of two per group of 32 */
};

/* A matrix of `rows` outputs by `columns` inputs, or `count` of them one behind another. */
typedef struct {
    const void *weight;
    const void *scales;
    const void *biases;
    const float *offset; /* added to every output; may be null */
    int64_t rows, columns, count;
    int32_t format, bits, group, element;
} kc_matrix;

enum { KC_BLOCK = 512 }; /* columns that are made float32 at a time; a multiple of every group */
enum { KC_TILE = 16 };   /* rows of weights that are made float32 at a time */
enum { KC_PANEL = 256 }; /* rows of input that are multiplied with them at a time */
enum { KC_ALIGN = 64, KC_MOST_THREADS = 64 };

/* `count` rows of arranged input times matrix number `which`. */
typedef struct {
    const kc_matrix *matrix;
    int64_t which;
    const float *input; /* `count` rows of `stride` floats, arranged for the matrix */
    int64_t stride, count;
    float *output;         /* rows of `matrix->rows` floats */
    const int64_t *places; /* which row of the output each is; null: in order */
} kc_product;

typedef struct {
    const float *queries, *keys, *values, *sinks;
    const uint8_t *allowed; /* one byte each: whether a key may be looked at */
    const float *added;     /* or: what is added to its score */
    float *output;          /* (batch, queries, heads, value width), in one piece */
    int64_t batch, heads, key_heads, length, keys_length, width, value_width;
    int64_t query_strides[3], key_strides[3], value_strides[3], mask_strides[4];
    float scale;
    int32_t causal;
} kc_attention;

typedef struct {
    int64_t dims;
    int32_t interleaved; /* pairs lie side by side, not half a row apart */
    float base, scale;
    const float *periods; /* used instead of the base, if there are any */
} kc_rope;

/* Which part of an attention one thread does: heads that share a key head, and rows. */
typedef struct {
    int64_t batch, head, heads, row, rows;
} kc_share;

enum { KC_SILU = 0, KC_GELU = 1, KC_GELU_TANH = 2, KC_RELU2 = 3 };

/* The arithmetic for one kind of processor. */
typedef struct {
    const char *name;
    int64_t lanes;
    void (*arrange)(const kc_matrix *matrix, const float *from, float *to);
    int64_t (*arrangement)(const kc_matrix *matrix);
    int64_t (*stride)(const kc_matrix *matrix);
    void (*multiply)(const kc_product *product, int64_t first, int64_t end, float *scratch);
    void (*rms_norm)(const float *x, const float *weight, float *y, int64_t width, float eps);
    void (*layer_norm)(const float *x, const float *weight, const float *bias, float *y, int64_t width, float eps);
    void (*activate)(int32_t kind, const float *x, const float *factor, float *y, int64_t count);
    void (*attend)(const kc_attention *task, const kc_share *share, float *scratch);
    void (*add)(const float *a, const float *b, float *y, int64_t count);
} kc_kernels;

extern const kc_kernels kc_plain;
#if defined(__x86_64__)
extern const kc_kernels kc_avx2, kc_avx512;
#elif defined(__aarch64__)
extern const kc_kernels kc_neon;
#endif

/* Floats of scratch that `multiply` needs, for the widest vectors there are. */
enum { KC_SCRATCH = KC_TILE * KC_BLOCK + KC_PANEL * KC_TILE * 16 };

/* Floats of scratch that `attend` needs. */
KC_INLINE int64_t kc_attend_scratch(int64_t keys_length) { return 4 * (keys_length + 32); }

/* The threads. `work` is called by each of them that comes in time, and takes pieces until there are none. */
typedef void (*kc_work)(void *argument, int thread);
/* One caller at a time: between enter and leave. */
void kc_enter(void);
void kc_leave(void);
int kc_threads(void);
void kc_run(kc_work work, void *argument, int together);

#endif
