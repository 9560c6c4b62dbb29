/* Vectors of 8 floats, on processors with AVX2, FMA and F16C. */
#include <immintrin.h>

#define LANES 8
typedef __m256 vf;

KC_INLINE __m256i v_mask(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
KC_INLINE vf v_load(const float *p) { return _mm256_loadu_ps(p); }
KC_INLINE void v_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
KC_INLINE vf v_part(const float *p, int64_t n) { return _mm256_maskload_ps(p, v_mask(n)); }
KC_INLINE void v_store_part(float *p, vf v, int64_t n) { _mm256_maskstore_ps(p, v_mask(n), v); }
KC_INLINE vf v_all(float x) { return _mm256_set1_ps(x); }
KC_INLINE vf v_add(vf a, vf b) { return _mm256_add_ps(a, b); }
KC_INLINE vf v_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
KC_INLINE vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
KC_INLINE vf v_div(vf a, vf b) { return _mm256_div_ps(a, b); }
KC_INLINE vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
/* The second where either is no number, so that what is no number stays none. */
KC_INLINE vf v_max(vf a, vf b) { return _mm256_max_ps(a, b); }
KC_INLINE vf v_min(vf a, vf b) { return _mm256_min_ps(a, b); }
KC_INLINE vf v_round(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
/* x · 2^n for whole n of ordinary size, in two steps, so that the smallest results are reached. */
KC_INLINE vf v_scale2(vf x, vf n) {
    __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1), bias = _mm256_set1_epi32(127);
    __m256i rest = _mm256_sub_epi32(whole, half);
    vf first = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    vf second = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
    return v_mul(v_mul(x, first), second);
}
KC_INLINE vf v_bytes(const uint8_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}
KC_INLINE vf v_float16(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
KC_INLINE vf v_bfloat16(const uint16_t *p) {
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
KC_INLINE float s_float16(uint16_t bits) { return _cvtsh_ss(bits); }

/* The sums of four vectors, each in the order (i, i+4), (i, i+2), (i, i+1). */
KC_INLINE __m128 v_sums(vf a, vf b, vf c, vf d) {
    vf ab = v_add(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    vf cd = v_add(_mm256_permute2f128_ps(c, d, 0x20), _mm256_permute2f128_ps(c, d, 0x31));
    /* In each half, of one of a and b, then of one of c and d. */
    vf pairs = v_add(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
    pairs = v_add(pairs, _mm256_shuffle_ps(pairs, pairs, 0xb1));
    return _mm_unpacklo_ps(_mm_shuffle_ps(_mm256_castps256_ps128(pairs), _mm256_castps256_ps128(pairs), 0x88),
                           _mm_shuffle_ps(_mm256_extractf128_ps(pairs, 1), _mm256_extractf128_ps(pairs, 1), 0x88));
}
KC_INLINE void v_store_sums(float *p, vf a, vf b, vf c, vf d) { _mm_storeu_ps(p, v_sums(a, b, c, d)); }

/* 64 values of 4 bits out of 32 bytes. Lane l of vector j has value 8·l + j. */
enum { NIBBLE_VECTORS = 8 };
KC_INLINE int64_t nibble_place(int64_t vector, int64_t lane) { return 8 * lane + vector; }
typedef struct {
    vf low, high; /* what values 0 to 7 stand for, and 8 to 15 */
    int whole;    /* each value stands for itself */
} nibbles;
KC_INLINE nibbles nibbles_of(const float *meaning) {
    return (nibbles){v_load(meaning), v_load(meaning + 8), meaning[1] == 1.0f};
}
KC_INLINE void nibble_values(const nibbles *table, const uint8_t *p, vf *values) {
    const __m256i words = _mm256_loadu_si256((const __m256i *)p);
    for (int j = 0; j < NIBBLE_VECTORS; j++) {
        const __m256i shifted = _mm256_srli_epi32(words, 4 * j);
        if (table->whole) {
            values[j] = _mm256_cvtepi32_ps(_mm256_and_si256(shifted, _mm256_set1_epi32(15)));
        } else {
            vf low = _mm256_permutevar8x32_ps(table->low, shifted), high = _mm256_permutevar8x32_ps(table->high, shifted);
            values[j] = _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(shifted, 28)));
        }
    }
}
/* What belongs to the first 32 values in their lanes of a vector, and what belongs to the others in theirs. */
KC_INLINE vf nibble_halves(int vector, float first, float second) {
    (void)vector;
    return _mm256_blend_ps(v_all(first), v_all(second), 0xf0);
}

/* 64 stored values as 16-bit numbers, in four vectors. Each 32-bit lane holds two of one half of the 64, and
 * belongs to the half that whole_halves gives it. */
#define WHOLE 1
enum { WHOLE_VECTORS = 4, WHOLE_LANES = 16, WHOLE_INPUTS = 2, WHOLE_WEIGHTS = 2 };
typedef __m256i vw;
KC_INLINE vf whole_halves(float first, float second) { return nibble_halves(0, first, second); }
KC_INLINE vw w_load(const int16_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
KC_INLINE void w_store(int16_t *p, vw v) { _mm256_storeu_si256((__m256i *)p, v); }
KC_INLINE void w_nibbles(const uint8_t *p, vw *values) {
    const __m256i words = _mm256_loadu_si256((const __m256i *)p), low = _mm256_set1_epi16(15);
    values[0] = _mm256_and_si256(words, low);
    values[1] = _mm256_and_si256(_mm256_srli_epi16(words, 4), low);
    values[2] = _mm256_and_si256(_mm256_srli_epi16(words, 8), low);
    values[3] = _mm256_srli_epi16(words, 12);
}
KC_INLINE int64_t w_nibble_place(int64_t vector, int64_t lane) { return 4 * lane + vector; }
KC_INLINE void w_bytes(const uint8_t *p, vw *values) {
    for (int j = 0; j < WHOLE_VECTORS; j++) {
        const __m128i first = _mm_loadl_epi64((const __m128i *)(p + 8 * j));
        const __m128i second = _mm_loadl_epi64((const __m128i *)(p + 32 + 8 * j));
        values[j] = _mm256_cvtepu8_epi16(_mm_unpacklo_epi64(first, second));
    }
}
KC_INLINE int64_t w_byte_place(int64_t vector, int64_t lane) { return 8 * vector + lane / 8 * 32 + lane % 8; }
KC_INLINE vf w_products(const vw *x, const vw *w) {
    const __m256i first = _mm256_add_epi32(_mm256_madd_epi16(x[0], w[0]), _mm256_madd_epi16(x[1], w[1]));
    const __m256i second = _mm256_add_epi32(_mm256_madd_epi16(x[2], w[2]), _mm256_madd_epi16(x[3], w[3]));
    return _mm256_cvtepi32_ps(_mm256_add_epi32(first, second));
}
