/* Compares the kernels for 64-bit ARM with those in plain C, where ARM is only emulated.
 *
 * Prints how many cases there were, and ends with 1 where one is wrong.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kafila_cpu.h"

/* With as many rows they go through tiles, with fewer they do not. */
enum { INPUTS = 11 };

static float *scratch;
static const float EXACT = 1e-5f;

static float any_float(void) { return (float)rand() / (float)RAND_MAX * 2 - 1; }

/* The bits of a 16-bit number of ordinary size. */
static uint16_t any_half(int element) {
    return (uint16_t)(element == KC_FLOAT16 ? 0x3000 + rand() % 0x800 : 0x3f00 + rand() % 0x80);
}

static void *any_elements(int64_t count, int element) {
    uint8_t *all = malloc((size_t)count * 4);
    for (int64_t i = 0; i < count; i++) {
        const float wide = any_float();
        const uint16_t half = any_half(element);
        if (element == KC_FLOAT32) memcpy(all + 4 * i, &wide, 4);
        else memcpy(all + 2 * i, &half, 2);
    }
    return all;
}

static void *any_bytes(int64_t count, int least, int range) {
    uint8_t *all = malloc((size_t)count);
    for (int64_t i = 0; i < count; i++) {
        all[i] = (uint8_t)(least + rand() % range);
        if ((all[i] & 0x7f) == 0x7f) all[i] ^= 1; /* no number, as an 8-bit float */
    }
    return all;
}

static float *product(const kc_kernels *kernels, const kc_matrix *matrix, const float *x, int64_t together) {
    const int64_t stride = kernels->stride(matrix);
    float *arranged = aligned_alloc(KC_ALIGN, ((size_t)(stride * INPUTS) * 4 + 63) / 64 * 64);
    float *y = malloc((size_t)(INPUTS * matrix->rows) * sizeof *y);
    for (int64_t row = 0; row < INPUTS; row++) kernels->arrange(matrix, x + row * matrix->columns, arranged + row * stride);
    for (int64_t row = 0; row < INPUTS; row += together) {
        const int64_t count = INPUTS - row < together ? INPUTS - row : together;
        const kc_product task = {matrix, 0, arranged + row * stride, stride, count, y + row * matrix->rows, NULL};
        kernels->multiply(&task, 0, matrix->rows, scratch);
    }
    free(arranged);
    return y;
}

/* Whether results are further apart than as much of the largest. */
static int differ(const float *a, const float *b, int64_t count, float much) {
    float largest = 1, apart = 0;
    for (int64_t i = 0; i < count; i++) {
        largest = fmaxf(largest, fabsf(a[i]));
        apart = isfinite(b[i]) ? fmaxf(apart, fabsf(a[i] - b[i])) : INFINITY;
    }
    return apart > much * largest;
}

static int check_product(int format, int bits, int group, int element, int64_t rows, int64_t columns) {
    const int64_t groups = group ? rows * columns / group : 0;
    const int powers = format == KC_MXFP4 || format == KC_MXFP8;
    kc_matrix matrix = {.rows = rows, .columns = columns, .count = 1, .format = format, .bits = bits, .group = group, .element = element};
    void *weight = format == KC_DENSE ? any_elements(rows * columns, element) : any_bytes(rows * columns, 0, 256);
    void *scales = powers ? any_bytes(groups, 120, 10) : any_elements(groups, element), *biases = any_elements(groups, element);
    matrix.weight = weight;
    matrix.scales = scales;
    matrix.biases = biases;
    float *x = any_elements(INPUTS * columns, KC_FLOAT32);
    float *right = product(&kc_plain, &matrix, x, INPUTS), *found = product(&kc_neon, &matrix, x, INPUTS);
    /* Where input becomes whole numbers: 3e-6 of what the largest could be. */
    const int whole = format == KC_AFFINE && (bits == 4 || bits == 8) && columns % 64 == 0;
    int wrong = differ(right, found, INPUTS * rows, whole ? 1e-4f : EXACT);
    for (int64_t together = 1; together < INPUTS; together += 2) {
        float *fewer = product(&kc_neon, &matrix, x, together);
        wrong |= memcmp(found, fewer, (size_t)(INPUTS * rows) * sizeof *fewer) != 0;
        free(fewer);
    }
    if (wrong) printf("format %d, %d bits, groups of %d, element %d: %lld by %lld\n", format, bits, group, element, (long long)rows, (long long)columns);
    free(weight), free(scales), free(biases), free(x), free(right), free(found);
    return wrong;
}

static int check_rows(void) {
    enum { WIDTH = 99 };
    float *x = any_elements(WIDTH, KC_FLOAT32), right[WIDTH], found[WIDTH];
    int wrong = 0;
    for (int i = 0; i < WIDTH; i++) x[i] *= 30;
    for (int kind = KC_SILU; kind <= KC_RELU2; kind++) {
        kc_plain.activate(kind, x, NULL, right, WIDTH);
        kc_neon.activate(kind, x, NULL, found, WIDTH);
        wrong += differ(right, found, WIDTH, EXACT);
    }
    kc_plain.rms_norm(x, x, right, WIDTH, 1e-5f);
    kc_neon.rms_norm(x, x, found, WIDTH, 1e-5f);
    wrong += differ(right, found, WIDTH, EXACT);
    kc_plain.layer_norm(x, x, x, right, WIDTH, 1e-5f);
    kc_neon.layer_norm(x, x, x, found, WIDTH, 1e-5f);
    free(x);
    return wrong + differ(right, found, WIDTH, EXACT);
}

static int check_attention(void) {
    enum { WIDTH = 33, LENGTH = 5, KEYS = 9 };
    float *q = any_elements(4 * LENGTH * WIDTH, KC_FLOAT32), *k = any_elements(2 * KEYS * WIDTH, KC_FLOAT32);
    float *v = any_elements(2 * KEYS * WIDTH, KC_FLOAT32), results[2][LENGTH * 4 * WIDTH];
    for (int which = 0; which < 2; which++) {
        const kc_attention task = {.queries = q, .keys = k, .values = v, .output = results[which], .batch = 1, .heads = 4,
                                   .key_heads = 2, .length = LENGTH, .keys_length = KEYS, .width = WIDTH, .value_width = WIDTH,
                                   .query_strides = {4 * LENGTH * WIDTH, LENGTH * WIDTH, WIDTH},
                                   .key_strides = {2 * KEYS * WIDTH, KEYS * WIDTH, WIDTH},
                                   .value_strides = {2 * KEYS * WIDTH, KEYS * WIDTH, WIDTH}, .scale = 0.2f, .causal = 1};
        for (int head = 0; head < 4; head++) {
            const kc_share share = {0, head, 1, 0, LENGTH};
            (which ? &kc_neon : &kc_plain)->attend(&task, &share, scratch);
        }
    }
    free(q), free(k), free(v);
    return differ(results[0], results[1], LENGTH * 4 * WIDTH, EXACT);
}

int main(void) {
    static const int forms[][4] = {
        {KC_AFFINE, 2, 32, KC_FLOAT32}, {KC_AFFINE, 3, 64, KC_BFLOAT16}, {KC_AFFINE, 4, 32, KC_FLOAT32},
        {KC_AFFINE, 4, 64, KC_FLOAT16}, {KC_AFFINE, 4, 128, KC_BFLOAT16}, {KC_AFFINE, 5, 32, KC_FLOAT32},
        {KC_AFFINE, 6, 64, KC_FLOAT32}, {KC_AFFINE, 8, 32, KC_FLOAT16}, {KC_AFFINE, 8, 64, KC_FLOAT32},
        {KC_MXFP4, 4, 32, KC_FLOAT32}, {KC_MXFP8, 8, 32, KC_FLOAT32}, {KC_DENSE, 0, 0, KC_FLOAT32},
        {KC_DENSE, 0, 0, KC_FLOAT16}, {KC_DENSE, 0, 0, KC_BFLOAT16}};
    int cases = 2, wrong = 0;
    scratch = aligned_alloc(KC_ALIGN, KC_SCRATCH * sizeof *scratch);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        for (int64_t rows = 1; rows < 40; rows += 13) {
            for (int64_t columns = 128; columns <= 640; columns += 128) {
                const int64_t odd = forms[i][0] == KC_DENSE ? 3 : 0;
                wrong += check_product(forms[i][0], forms[i][1], forms[i][2], forms[i][3], rows, columns + odd);
                cases++;
            }
        }
    }
    wrong += check_rows() + check_attention();
    printf("%d cases, %d wrong\n", cases, wrong);
    return wrong > 0;
}
