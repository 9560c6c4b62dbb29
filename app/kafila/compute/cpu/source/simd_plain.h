/* Vectors of 4 floats in the compiler's own words, for processors of any kind. */
#include <math.h>
#include <string.h>

#define LANES 4
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));

KC_INLINE vf v_load(const float *p) {
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}
KC_INLINE void v_store(float *p, vf v) { memcpy(p, &v, sizeof v); }
KC_INLINE vf v_part(const float *p, int64_t n) {
    vf v = {0};
    for (int64_t i = 0; i < n; i++) v[i] = p[i];
    return v;
}
KC_INLINE void v_store_part(float *p, vf v, int64_t n) {
    for (int64_t i = 0; i < n; i++) p[i] = v[i];
}
KC_INLINE vf v_all(float x) { return (vf){x, x, x, x}; }
KC_INLINE vf v_add(vf a, vf b) { return a + b; }
KC_INLINE vf v_sub(vf a, vf b) { return a - b; }
KC_INLINE vf v_mul(vf a, vf b) { return a * b; }
KC_INLINE vf v_div(vf a, vf b) { return a / b; }
KC_INLINE vf v_fma(vf a, vf b, vf c) { return a * b + c; }
KC_INLINE vf v_choose(vi first, vf a, vf b) { return (vf)((first & (vi)a) | (~first & (vi)b)); }
/* The second where either is no number, so that what is no number stays none. */
KC_INLINE vf v_max(vf a, vf b) { return v_choose(a > b, a, b); }
KC_INLINE vf v_min(vf a, vf b) { return v_choose(a < b, a, b); }
KC_INLINE vf v_round(vf a) {
    /* Adding and taking away 1.5 · 2^23 leaves no fraction of a number of ordinary size. */
    const vf large = v_all(12582912.0f);
    volatile vf sum = a + large;
    return sum - large;
}
/* x · 2^n for whole n of ordinary size, in two steps, so that the smallest results are reached. */
KC_INLINE vf v_scale2(vf x, vf n) {
    vi whole = __builtin_convertvector(n, vi), half = whole >> 1;
    return x * (vf)((half + 127) << 23) * (vf)((whole - half + 127) << 23);
}
KC_INLINE vf v_bytes(const uint8_t *p) { return (vf){p[0], p[1], p[2], p[3]}; }
KC_INLINE float s_float16(uint16_t bits) {
    /* The exponent is rebased by a multiplication, which is exact, the smallest numbers included. */
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = (uint32_t)(bits & 0x7fff) << 13;
    float value;
    if (rest >= 0x0f800000u) {
        rest = rest + 0x70000000u; /* infinite, or no number */
        rest |= sign;
        memcpy(&value, &rest, sizeof value);
        return value;
    }
    memcpy(&value, &rest, sizeof value);
    value *= 0x1p112f;
    return sign ? -value : value;
}
KC_INLINE vf v_float16(const uint16_t *p) {
    return (vf){s_float16(p[0]), s_float16(p[1]), s_float16(p[2]), s_float16(p[3])};
}
KC_INLINE vf v_bfloat16(const uint16_t *p) {
    return (vf)(vi){(int32_t)((uint32_t)p[0] << 16), (int32_t)((uint32_t)p[1] << 16), (int32_t)((uint32_t)p[2] << 16),
                    (int32_t)((uint32_t)p[3] << 16)};
}

/* The sums of four vectors, each in the order (i, i+2), (i, i+1). */
KC_INLINE void v_store_sums(float *p, vf a, vf b, vf c, vf d) {
    const vf sums = {(a[0] + a[2]) + (a[1] + a[3]), (b[0] + b[2]) + (b[1] + b[3]), (c[0] + c[2]) + (c[1] + c[3]),
                     (d[0] + d[2]) + (d[1] + d[3])};
    v_store(p, sums);
}

/* 64 values of 4 bits out of 32 bytes. Lane l of vector j has value 8·(l + 4·(j div 8)) + j mod 8. */
enum { NIBBLE_VECTORS = 16 };
KC_INLINE int64_t nibble_place(int64_t vector, int64_t lane) { return 8 * (lane + vector / 8 * 4) + vector % 8; }
typedef struct {
    const float *meaning; /* what each of the 16 values stands for */
    int whole;            /* each value stands for itself */
} nibbles;
KC_INLINE nibbles nibbles_of(const float *meaning) { return (nibbles){meaning, meaning[1] == 1.0f}; }
KC_INLINE void nibble_values(const nibbles *table, const uint8_t *p, vf *values) {
    for (int j = 0; j < NIBBLE_VECTORS; j++) {
        vi words;
        memcpy(&words, p + j / 8 * 16, sizeof words);
        const vi value = (words >> (4 * (j % 8))) & 15;
        values[j] = table->whole ? __builtin_convertvector(value, vf)
                                 : (vf){table->meaning[value[0]], table->meaning[value[1]], table->meaning[value[2]],
                                        table->meaning[value[3]]};
    }
}
/* What belongs to the first 32 values in their lanes of a vector, and what belongs to the others in theirs. */
KC_INLINE vf nibble_halves(int vector, float first, float second) { return v_all(vector < 8 ? first : second); }
