/* Input as a matrix wants it, for one kind of vector. Included behind unpack.h.
 *
 * Affine weights of 4 and 8 bits are multiplied as the whole numbers that they are stored as,
 * where there are instructions for it. Input then becomes numbers of 16 bits with a factor for
 * each SPAN of columns: that is exact to one part in 65534 of the largest of the span, and
 * several times quicker where one row is computed alone. An arranged row is, in this order:
 * the whole numbers; the factors, a vector for each 64 columns; and the sums of the input over
 * each group of weights. Where any number of a span is infinite or none, its factor is none, and
 * so is every result of the row.
 *
 * For all other matrices input stays float32.
 */

enum { SPAN = 32, MOST_WHOLE = 32767 };

KC_INLINE int is_whole(const kc_matrix *m) {
#ifdef WHOLE
    return m->format == KC_AFFINE && (m->bits == 4 || m->bits == 8) && m->columns % NIBBLES == 0;
#else
    (void)m;
    return 0;
#endif
}

KC_INLINE int64_t up_to_16(int64_t count) { return (count + 15) / 16 * 16; }
KC_INLINE int64_t factors_at(const kc_matrix *m) { return up_to_16(m->columns / 2); }
KC_INLINE int64_t sums_at(const kc_matrix *m) { return factors_at(m) + up_to_16(m->columns / NIBBLES * LANES); }
KC_INLINE int64_t groups_in(const kc_matrix *m) { return m->columns / m->group; }

static int64_t stride(const kc_matrix *m) {
    return is_whole(m) ? sums_at(m) + up_to_16(groups_in(m)) : up_to_16(m->columns);
}

/* Matrices of the same columns that want the same arrangement have the same number. */
static int64_t arrangement(const kc_matrix *m) { return is_whole(m) ? m->bits * 1000 + m->group : is_arranged(m); }

KC_INLINE float total(vf v) {
    float sums[4];
    v_store_sums(sums, v, v_all(0), v_all(0), v_all(0));
    return sums[0];
}

#ifdef WHOLE
KC_INLINE float largest(const float *from, int64_t count) {
    vf most = v_all(0), none = v_all(0);
    for (int64_t i = 0; i < count; i += LANES) {
        const vf x = v_load(from + i);
        most = v_max(most, v_max(x, v_sub(v_all(0), x)));
        /* 0 for each number, none for what is infinite or none; kept apart, as v_max forgets. */
        none = v_fma(x, v_all(0), none);
    }
    float each[LANES], result = 0;
    v_store(each, most);
    for (int i = 0; i < LANES; i++) result = each[i] > result ? each[i] : result;
    return result + total(none);
}

/* SPAN numbers as whole ones; gives back their factor, and their sum as it has become. */
KC_INLINE float whole_span(const float *from, int16_t *to, float *sum) {
    const float most = largest(from, SPAN), factor = most / MOST_WHOLE;
    /* So small that its reciprocal is out of range: nothing. */
    const float inverse = most > 1e-33f ? MOST_WHOLE / most : 0.0f;
    int32_t whole_sum = 0;
    for (int64_t i = 0; i < SPAN; i++) {
        to[i] = (int16_t)(int32_t)rintf(most >= 0 ? from[i] * inverse : 0.0f);
        whole_sum += to[i];
    }
    *sum = factor * (float)whole_sum;
    return factor;
}

static void arrange_whole(const kc_matrix *m, const float *from, float *to) {
    int16_t *numbers = (int16_t *)to;
    float *factors = to + factors_at(m), *sums = to + sums_at(m);
    const int shift = __builtin_ctz((unsigned)m->group);
    for (int64_t i = 0; i < up_to_16(groups_in(m)); i++) sums[i] = 0;
    for (int64_t i = 0; i < m->columns; i += NIBBLES) {
        int16_t whole[NIBBLES];
        float sum[2];
        const float first = whole_span(from + i, whole, &sum[0]), second = whole_span(from + i + SPAN, whole + SPAN, &sum[1]);
        sums[i >> shift] += sum[0];
        sums[(i + SPAN) >> shift] += sum[1];
        v_store(factors + i / NIBBLES * LANES, whole_halves(first, second));
        for (int64_t v = 0; v < WHOLE_VECTORS; v++) {
            for (int64_t l = 0; l < WHOLE_LANES; l++) {
                numbers[i + v * WHOLE_LANES + l] = whole[m->bits == 4 ? w_nibble_place(v, l) : w_byte_place(v, l)];
            }
        }
    }
}
#endif

/* One row of input. */
static void arrange(const kc_matrix *m, const float *from, float *to) {
#ifdef WHOLE
    if (is_whole(m)) {
        arrange_whole(m, from, to);
        return;
    }
#endif
    if (!is_arranged(m)) {
        memcpy(to, from, (size_t)m->columns * sizeof *to);
    } else {
        for (int64_t i = 0; i < m->columns; i += NIBBLES) {
            for (int64_t j = 0; j < NIBBLE_VECTORS; j++) {
                for (int64_t l = 0; l < LANES; l++) to[i + j * LANES + l] = from[i + nibble_place(j, l)];
            }
        }
    }
    for (int64_t i = m->columns; i < stride(m); i++) to[i] = 0;
}
