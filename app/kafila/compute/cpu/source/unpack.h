/* From stored weights to float32, for one kind of vector. Included behind a simd_*.h.
 *
 * A matrix whose 4-bit values fill whole blocks of 64 columns is *arranged*: its values come out
 * in the order in which they are quickest to get at (nibble_place), and input is brought into the
 * same order once. All others keep the order of their columns.
 */

enum { NIBBLES = 64 };

KC_INLINE int is_arranged(const kc_matrix *m) {
    const int four = (m->format == KC_AFFINE && m->bits == 4) || m->format == KC_MXFP4;
    return four && m->columns % NIBBLES == 0;
}

KC_INLINE int64_t stored_bits(const kc_matrix *m) {
    switch (m->format) {
    case KC_AFFINE: return m->bits;
    case KC_MXFP4: return 4;
    case KC_MXFP8: return 8;
    default: return m->element == KC_FLOAT32 ? 32 : 16;
    }
}

KC_INLINE float element(const void *from, int64_t index, int32_t type) {
    if (type == KC_FLOAT32) return ((const float *)from)[index];
    const uint16_t bits = ((const uint16_t *)from)[index];
    if (type == KC_FLOAT16) return s_float16(bits);
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* 2^(exponent - 127) as the microscaling formats store it. */
KC_INLINE float power_of_two(uint8_t exponent) {
    uint32_t bits = exponent ? (uint32_t)exponent << 23 : 0x00400000u;
    if (exponent == 255) bits = 0x7fc00000u;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static const float whole_numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const float small_floats[16] = {0, .5f, 1, 1.5f, 2, 3, 4, 6, -0.f, -.5f, -1, -1.5f, -2, -3, -4, -6};

/* Where a stretch of one row lies: its values, and the number of its first group in the matrix. Groups
 * are of 2^shift values. */
typedef struct {
    const uint8_t *values;
    int64_t group;
    int shift;
} stretch;

KC_INLINE stretch stretch_of(const kc_matrix *m, int64_t row, int64_t column) {
    stretch s;
    s.values = (const uint8_t *)m->weight + (row * m->columns + column) * stored_bits(m) / 8;
    s.shift = m->group ? __builtin_ctz((unsigned)m->group) : 0;
    s.group = (row * m->columns + column) >> s.shift;
    return s;
}

KC_INLINE void unpack_nibbles_affine(const kc_matrix *m, stretch s, int64_t count, float *to, const int32_t type,
                                     const int halves) {
    const nibbles table = nibbles_of(whole_numbers);
    for (int64_t i = 0; i < count; i += NIBBLES, to += NIBBLES) {
        vf values[NIBBLE_VECTORS];
        nibble_values(&table, s.values + i / 2, values);
        const int64_t group = s.group + (i >> (halves ? 5 : s.shift));
        const float scale = element(m->scales, group, type), bias = element(m->biases, group, type);
        if (halves) {
            const float scale2 = element(m->scales, group + 1, type), bias2 = element(m->biases, group + 1, type);
            for (int j = 0; j < NIBBLE_VECTORS; j++) {
                v_store(to + j * LANES, v_fma(values[j], nibble_halves(j, scale, scale2), nibble_halves(j, bias, bias2)));
            }
        } else {
            for (int j = 0; j < NIBBLE_VECTORS; j++) v_store(to + j * LANES, v_fma(values[j], v_all(scale), v_all(bias)));
        }
    }
}

KC_INLINE void unpack_nibbles_mx(const kc_matrix *m, stretch s, int64_t count, float *to) {
    const nibbles table = nibbles_of(small_floats);
    const uint8_t *scales = (const uint8_t *)m->scales + s.group;
    for (int64_t i = 0; i < count; i += NIBBLES, to += NIBBLES) {
        vf values[NIBBLE_VECTORS];
        nibble_values(&table, s.values + i / 2, values);
        const float s1 = power_of_two(scales[i / 32]), s2 = power_of_two(scales[i / 32 + 1]);
        for (int j = 0; j < NIBBLE_VECTORS; j++) v_store(to + j * LANES, v_mul(values[j], nibble_halves(j, s1, s2)));
    }
}

KC_INLINE void unpack_bytes_affine(const kc_matrix *m, stretch s, int64_t count, float *to) {
    for (int64_t i = 0; i < count; i += 32) {
        const int64_t group = s.group + (i >> s.shift);
        const vf scale = v_all(element(m->scales, group, m->element)), bias = v_all(element(m->biases, group, m->element));
        for (int64_t j = i; j < i + 32; j += LANES) v_store(to + j, v_fma(v_bytes(s.values + j), scale, bias));
    }
}

/* Any other number of bits: eight values lie in as many bytes, the lowest bits first. */
KC_INLINE void unpack_bits_affine(const kc_matrix *m, stretch s, int64_t count, float *to, const int bits) {
    for (int64_t i = 0; i < count; i += 8) {
        const int64_t group = s.group + (i >> s.shift);
        const float scale = element(m->scales, group, m->element), bias = element(m->biases, group, m->element);
        uint64_t word = 0;
        memcpy(&word, s.values + i / 8 * bits, (size_t)bits);
        float whole[8];
        for (int j = 0; j < 8; j++) whole[j] = (float)(int32_t)((word >> (j * bits)) & ((1u << bits) - 1));
        for (int j = 0; j < 8; j += LANES > 8 ? 8 : LANES) {
#if LANES > 8
            v_store_part(to + i, v_fma(v_part(whole, 8), v_all(scale), v_all(bias)), 8);
#else
            v_store(to + i + j, v_fma(v_load(whole + j), v_all(scale), v_all(bias)));
#endif
        }
    }
}

KC_INLINE void unpack_values_mx(const kc_matrix *m, stretch s, int64_t count, float *to) {
    const uint8_t *scales = (const uint8_t *)m->scales + s.group;
    for (int64_t i = 0; i < count; i++) {
        const float scale = power_of_two(scales[i / 32]);
        if (m->format == KC_MXFP4) {
            to[i] = small_floats[(s.values[i / 2] >> (i % 2 * 4)) & 15] * scale;
            continue;
        }
        /* The bits of an e4m3 number are those of a float with too small an exponent. */
        const uint32_t value = s.values[i], wide = (value & 0x7f) << 20 | (value & 0x80) << 24;
        float small;
        memcpy(&small, &wide, sizeof small);
        to[i] = (value & 0x7f) == 0x7f ? NAN : small * 0x1p120f * scale;
    }
}

KC_INLINE void unpack_dense(const kc_matrix *m, stretch s, int64_t count, float *to) {
    const uint16_t *halves = (const uint16_t *)s.values;
    const int64_t whole = count / LANES * LANES;
    if (m->element == KC_FLOAT32) {
        memcpy(to, s.values, (size_t)count * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < whole; i += LANES) {
        v_store(to + i, m->element == KC_FLOAT16 ? v_float16(halves + i) : v_bfloat16(halves + i));
    }
    for (int64_t i = whole; i < count; i++) to[i] = element(halves, i, m->element);
}

/* `count` values of a row from a column on that begins a group, and zeros up to a whole vector. */
static void unpack(const kc_matrix *m, int64_t row, int64_t column, int64_t count, float *to) {
    const stretch s = stretch_of(m, row, column);
    for (int64_t i = count; i % LANES; i++) to[i] = 0;
    if (m->format == KC_DENSE) {
        unpack_dense(m, s, count, to);
    } else if (m->format != KC_AFFINE) {
        if (is_arranged(m)) unpack_nibbles_mx(m, s, count, to);
        else unpack_values_mx(m, s, count, to);
    } else if (is_arranged(m)) {
        switch (m->element * 2 + (s.shift == 5)) {
        case KC_FLOAT32 * 2: unpack_nibbles_affine(m, s, count, to, KC_FLOAT32, 0); break;
        case KC_FLOAT32 * 2 + 1: unpack_nibbles_affine(m, s, count, to, KC_FLOAT32, 1); break;
        case KC_FLOAT16 * 2: unpack_nibbles_affine(m, s, count, to, KC_FLOAT16, 0); break;
        case KC_FLOAT16 * 2 + 1: unpack_nibbles_affine(m, s, count, to, KC_FLOAT16, 1); break;
        case KC_BFLOAT16 * 2: unpack_nibbles_affine(m, s, count, to, KC_BFLOAT16, 0); break;
        default: unpack_nibbles_affine(m, s, count, to, KC_BFLOAT16, 1); break;
        }
    } else {
        switch (m->bits) {
        case 2: unpack_bits_affine(m, s, count, to, 2); break;
        case 3: unpack_bits_affine(m, s, count, to, 3); break;
        case 4: unpack_bits_affine(m, s, count, to, 4); break;
        case 5: unpack_bits_affine(m, s, count, to, 5); break;
        case 6: unpack_bits_affine(m, s, count, to, 6); break;
        default: unpack_bytes_affine(m, s, count, to); break;
        }
    }
}
