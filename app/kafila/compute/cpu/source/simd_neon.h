/* Vectors of 4 floats, on 64-bit ARM. */
#include <arm_neon.h>
#include <string.h>

#define LANES 4
typedef float32x4_t vf;

KC_INLINE vf v_load(const float *p) { return vld1q_f32(p); }
KC_INLINE void v_store(float *p, vf v) { vst1q_f32(p, v); }
KC_INLINE vf v_part(const float *p, int64_t n) {
    float part[4] = {0};
    memcpy(part, p, (size_t)n * sizeof *p);
    return vld1q_f32(part);
}
KC_INLINE void v_store_part(float *p, vf v, int64_t n) {
    float part[4];
    vst1q_f32(part, v);
    memcpy(p, part, (size_t)n * sizeof *p);
}
KC_INLINE vf v_all(float x) { return vdupq_n_f32(x); }
KC_INLINE vf v_add(vf a, vf b) { return vaddq_f32(a, b); }
KC_INLINE vf v_sub(vf a, vf b) { return vsubq_f32(a, b); }
KC_INLINE vf v_mul(vf a, vf b) { return vmulq_f32(a, b); }
KC_INLINE vf v_div(vf a, vf b) { return vdivq_f32(a, b); }
KC_INLINE vf v_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
/* The second where either is no number, so that what is no number stays none. */
KC_INLINE vf v_max(vf a, vf b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
KC_INLINE vf v_min(vf a, vf b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
KC_INLINE vf v_round(vf a) { return vrndnq_f32(a); }
/* x · 2^n for whole n of ordinary size, in two steps, so that the smallest results are reached. */
KC_INLINE vf v_scale2(vf x, vf n) {
    int32x4_t whole = vcvtq_s32_f32(n), half = vshrq_n_s32(whole, 1), bias = vdupq_n_s32(127);
    int32x4_t rest = vsubq_s32(whole, half);
    vf first = vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(half, bias), 23));
    vf second = vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(rest, bias), 23));
    return vmulq_f32(vmulq_f32(x, first), second);
}
KC_INLINE vf v_bytes(const uint8_t *p) {
    uint32_t four;
    memcpy(&four, p, sizeof four);
    return vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(four)))));
}
KC_INLINE vf v_float16(const uint16_t *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
KC_INLINE vf v_bfloat16(const uint16_t *p) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16)); }
KC_INLINE float s_float16(uint16_t bits) {
    return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(bits))), 0);
}

/* The sums of four vectors, each in the order (i, i+1), (i, i+2). */
KC_INLINE void v_store_sums(float *p, vf a, vf b, vf c, vf d) {
    vst1q_f32(p, vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d)));
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
        const uint32x4_t words = vreinterpretq_u32_u8(vld1q_u8(p + j / 8 * 16));
        const uint32x4_t value = vandq_u32(vshlq_u32(words, vdupq_n_s32(-4 * (j % 8))), vdupq_n_u32(15));
        if (table->whole) {
            values[j] = vcvtq_f32_u32(value);
        } else {
            uint32_t each[4];
            vst1q_u32(each, value);
            const float meant[4] = {table->meaning[each[0]], table->meaning[each[1]], table->meaning[each[2]],
                                    table->meaning[each[3]]};
            values[j] = vld1q_f32(meant);
        }
    }
}
/* What belongs to the first 32 values in their lanes of a vector, and what belongs to the others in theirs. */
KC_INLINE vf nibble_halves(int vector, float first, float second) { return v_all(vector < 8 ? first : second); }

/* 64 stored values as 16-bit numbers, in eight vectors: the first 32 in the first four. The sums of both halves go
 * into the halves of a vector, where whole_halves has what belongs to them. */
#define WHOLE 1
enum { WHOLE_VECTORS = 8, WHOLE_LANES = 8, WHOLE_INPUTS = 2, WHOLE_WEIGHTS = 4 };
typedef int16x8_t vw;
KC_INLINE vf whole_halves(float first, float second) { return vcombine_f32(vdup_n_f32(first), vdup_n_f32(second)); }
KC_INLINE vw w_load(const int16_t *p) { return vld1q_s16(p); }
KC_INLINE void w_store(int16_t *p, vw v) { vst1q_s16(p, v); }
KC_INLINE vw w_wide(uint8x8_t bytes) { return vreinterpretq_s16_u16(vmovl_u8(bytes)); }
KC_INLINE void w_nibbles(const uint8_t *p, vw *values) {
    for (int half = 0; half < 2; half++) {
        const uint8x16_t bytes = vld1q_u8(p + 16 * half);
        const uint8x16_t even = vandq_u8(bytes, vdupq_n_u8(15)), odd = vshrq_n_u8(bytes, 4);
        values[4 * half] = w_wide(vget_low_u8(even));
        values[4 * half + 1] = w_wide(vget_high_u8(even));
        values[4 * half + 2] = w_wide(vget_low_u8(odd));
        values[4 * half + 3] = w_wide(vget_high_u8(odd));
    }
}
KC_INLINE int64_t w_nibble_place(int64_t vector, int64_t lane) {
    return vector / 4 * 32 + 2 * (vector % 2 * 8 + lane) + vector % 4 / 2;
}
KC_INLINE void w_bytes(const uint8_t *p, vw *values) {
    for (int v = 0; v < WHOLE_VECTORS; v++) values[v] = w_wide(vld1_u8(p + 8 * v));
}
KC_INLINE int64_t w_byte_place(int64_t vector, int64_t lane) { return 8 * vector + lane; }
KC_INLINE vf w_products(const vw *x, const vw *w) {
    int32x4_t sums[2];
    for (int half = 0; half < 2; half++) {
        sums[half] = vmull_s16(vget_low_s16(x[4 * half]), vget_low_s16(w[4 * half]));
        sums[half] = vmlal_high_s16(sums[half], x[4 * half], w[4 * half]);
        for (int v = 4 * half + 1; v < 4 * half + 4; v++) {
            sums[half] = vmlal_s16(sums[half], vget_low_s16(x[v]), vget_low_s16(w[v]));
            sums[half] = vmlal_high_s16(sums[half], x[v], w[v]);
        }
    }
    return vcvtq_f32_s32(vpaddq_s32(sums[0], sums[1]));
}
