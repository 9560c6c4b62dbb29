/* Vectors of 16 floats, on processors with AVX-512 (F, BW, DQ, VL, VNNI). */
#include <immintrin.h>

#define LANES 16
typedef __m512 vf;

KC_INLINE vf v_load(const float *p) { return _mm512_loadu_ps(p); }
KC_INLINE void v_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
KC_INLINE vf v_part(const float *p, int64_t n) { return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p); }
KC_INLINE void v_store_part(float *p, vf v, int64_t n) { _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v); }
KC_INLINE vf v_all(float x) { return _mm512_set1_ps(x); }
KC_INLINE vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
KC_INLINE vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
KC_INLINE vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
KC_INLINE vf v_div(vf a, vf b) { return _mm512_div_ps(a, b); }
KC_INLINE vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
/* The second where either is no number, so that what is no number stays none. */
KC_INLINE vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); }
KC_INLINE vf v_min(vf a, vf b) { return _mm512_min_ps(a, b); }
KC_INLINE vf v_round(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
/* x · 2^n for whole n of ordinary size. */
KC_INLINE vf v_scale2(vf x, vf n) { return _mm512_scalef_ps(x, n); }
KC_INLINE vf v_bytes(const uint8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
KC_INLINE vf v_float16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
KC_INLINE vf v_bfloat16(const uint16_t *p) {
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
KC_INLINE float s_float16(uint16_t bits) { return _cvtsh_ss(bits); }

/* The sums of four vectors, each in the order (i, i+8), (i, i+4), (i, i+2), (i, i+1). */
KC_INLINE __m128 v_sums(vf a, vf b, vf c, vf d) {
    vf ab = v_add(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    vf cd = v_add(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
    vf all = v_add(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
    all = v_add(all, _mm512_shuffle_ps(all, all, 0x4e));
    all = v_add(all, _mm512_shuffle_ps(all, all, 0xb1));
    const __m512i firsts = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
    return _mm512_castps512_ps128(_mm512_permutexvar_ps(firsts, all));
}
KC_INLINE void v_store_sums(float *p, vf a, vf b, vf c, vf d) { _mm_storeu_ps(p, v_sums(a, b, c, d)); }

/* 64 values of 4 bits out of 32 bytes. Lane l of vector j has value 8·(l mod 8) + j + 4·(l div 8). */
enum { NIBBLE_VECTORS = 4 };
KC_INLINE int64_t nibble_place(int64_t vector, int64_t lane) { return 8 * (lane % 8) + vector + 4 * (lane / 8); }
typedef struct {
    vf meaning; /* what each of the 16 values stands for */
} nibbles;
KC_INLINE nibbles nibbles_of(const float *meaning) { return (nibbles){v_load(meaning)}; }
KC_INLINE void nibble_values(const nibbles *table, const uint8_t *p, vf *values) {
    const __m512i words = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)p));
    const __m512i half = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 16, 16, 16, 16, 16, 16, 16, 16);
    for (int j = 0; j < NIBBLE_VECTORS; j++) {
        const __m512i shifts = _mm512_add_epi32(half, _mm512_set1_epi32(4 * j));
        values[j] = _mm512_permutexvar_ps(_mm512_srlv_epi32(words, shifts), table->meaning);
    }
}
/* What belongs to the first 32 values in their lanes of a vector, and what belongs to the others in theirs. */
KC_INLINE vf nibble_halves(int vector, float first, float second) {
    (void)vector;
    return _mm512_mask_blend_ps(0xf0f0, v_all(first), v_all(second));
}

/* 64 stored values as 16-bit numbers, in two vectors. Each 32-bit lane holds two of one half of the 64, and
 * belongs to the half that whole_halves gives it. */
#define WHOLE 1
enum { WHOLE_VECTORS = 2, WHOLE_LANES = 32, WHOLE_INPUTS = 4, WHOLE_WEIGHTS = 4 };
typedef __m512i vw;
KC_INLINE vf whole_halves(float first, float second) { return nibble_halves(0, first, second); }
KC_INLINE vw w_load(const int16_t *p) { return _mm512_loadu_si512(p); }
KC_INLINE void w_store(int16_t *p, vw v) { _mm512_storeu_si512(p, v); }
KC_INLINE void w_nibbles(const uint8_t *p, vw *values) {
    const __m512i words = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)p));
    const __m512i low = _mm512_set1_epi16(15);
    const __m512i first = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(4), 1);
    const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(8));
    values[0] = _mm512_and_si512(_mm512_srlv_epi16(words, first), low);
    values[1] = _mm512_and_si512(_mm512_srlv_epi16(words, second), low);
}
KC_INLINE int64_t w_nibble_place(int64_t vector, int64_t lane) { return 4 * (lane % 16) + 2 * vector + lane / 16; }
KC_INLINE void w_bytes(const uint8_t *p, vw *values) {
    const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    const __m512i bytes = _mm512_permutexvar_epi64(order, _mm512_loadu_si512(p));
    values[0] = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(bytes));
    values[1] = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(bytes, 1));
}
KC_INLINE int64_t w_byte_place(int64_t vector, int64_t lane) {
    return 16 * vector + lane / 16 * 8 + lane / 8 % 2 * 32 + lane % 8;
}
KC_INLINE vf w_products(const vw *x, const vw *w) {
    const __m512i first = _mm512_dpwssd_epi32(_mm512_setzero_si512(), x[0], w[0]);
    return _mm512_cvtepi32_ps(_mm512_dpwssd_epi32(first, x[1], w[1]));
}
