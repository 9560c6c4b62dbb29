/* Rows of input times rows of weights, for one kind of vector. Included behind unpack.h.
 *
 * Each output element has one vector that collects its products, from the first column to the
 * last; its lanes are summed at the end, always in the same order. In how large pieces the
 * work is cut changes nothing of that.
 */

/* `inputs` by `weights` elements over `columns` columns, on from what `sums` holds. */
KC_INLINE void collect(const float *const *w, const float *x, int64_t x_stride, int64_t columns, vf *sums, int fresh,
                       const int inputs, const int weights) {
    vf sum[inputs][weights];
    for (int m = 0; m < inputs; m++) {
        for (int n = 0; n < weights; n++) sum[m][n] = fresh ? v_all(0) : sums[m * KC_TILE + n];
    }
    for (int64_t k = 0; k < columns; k += LANES) {
        vf row[weights];
        for (int n = 0; n < weights; n++) row[n] = v_load(w[n] + k);
        for (int m = 0; m < inputs; m++) {
            const vf input = v_load(x + m * x_stride + k);
            for (int n = 0; n < weights; n++) sum[m][n] = v_fma(input, row[n], sum[m][n]);
        }
    }
    for (int m = 0; m < inputs; m++) {
        for (int n = 0; n < weights; n++) sums[m * KC_TILE + n] = sum[m][n];
    }
}

static void collect_panel(const float *const *w, const float *x, int64_t x_stride, int64_t columns, vf *sums, int fresh,
                          int64_t inputs, int64_t weights) {
    int64_t m = 0;
    for (; m + INPUTS <= inputs; m += INPUTS) {
        for (int64_t n = 0; n < weights; n += WEIGHTS) {
            collect(w + n, x + m * x_stride, x_stride, columns, sums + m * KC_TILE + n, fresh, INPUTS, WEIGHTS);
        }
    }
    for (; m + 2 <= inputs; m += 2) {
        for (int64_t n = 0; n < weights; n += 4) {
            collect(w + n, x + m * x_stride, x_stride, columns, sums + m * KC_TILE + n, fresh, 2, 4);
        }
    }
    if (m < inputs) {
        for (int64_t n = 0; n < weights; n += 8) {
            collect(w + n, x + m * x_stride, x_stride, columns, sums + m * KC_TILE + n, fresh, 1, 8);
        }
    }
}

#ifdef WHOLE
/* The same with whole numbers. `factors` has one for each 64 columns of each row of the tile. */
KC_INLINE void collect_whole(const int16_t *w, const float *factors, const float *x, const float *spans, int64_t x_stride,
                             int64_t columns, vf *sums, const int inputs, const int weights) {
    vf sum[inputs][weights];
    for (int m = 0; m < inputs; m++) {
        for (int n = 0; n < weights; n++) sum[m][n] = sums[m * KC_TILE + n];
    }
    for (int64_t i = 0; i < columns; i += NIBBLES) {
        vw input[inputs][WHOLE_VECTORS];
        for (int m = 0; m < inputs; m++) {
            const int16_t *numbers = (const int16_t *)(x + m * x_stride) + i;
            for (int v = 0; v < WHOLE_VECTORS; v++) input[m][v] = w_load(numbers + v * WHOLE_LANES);
        }
        for (int n = 0; n < weights; n++) {
            vw row[WHOLE_VECTORS];
            for (int v = 0; v < WHOLE_VECTORS; v++) row[v] = w_load(w + n * KC_BLOCK + i + v * WHOLE_LANES);
            const vf factor = v_load(factors + (n * KC_BLOCK + i) / NIBBLES * LANES);
            for (int m = 0; m < inputs; m++) {
                const vf both = v_mul(factor, v_load(spans + m * x_stride + i / NIBBLES * LANES));
                sum[m][n] = v_fma(w_products(input[m], row), both, sum[m][n]);
            }
        }
    }
    for (int m = 0; m < inputs; m++) {
        for (int n = 0; n < weights; n++) sums[m * KC_TILE + n] = sum[m][n];
    }
}

static void collect_whole_panel(const int16_t *w, const float *factors, const float *x, const float *spans,
                                int64_t x_stride, int64_t columns, vf *sums, int64_t inputs, int64_t weights) {
    int64_t m = 0;
    for (; m + WHOLE_INPUTS <= inputs; m += WHOLE_INPUTS) {
        for (int64_t n = 0; n < weights; n += WHOLE_WEIGHTS) {
            collect_whole(w + n * KC_BLOCK, factors + n * KC_BLOCK / NIBBLES * LANES, x + m * x_stride,
                          spans + m * x_stride, x_stride, columns, sums + m * KC_TILE + n, WHOLE_INPUTS, WHOLE_WEIGHTS);
        }
    }
    for (; m < inputs; m++) {
        for (int64_t n = 0; n < weights; n += 4) {
            collect_whole(w + n * KC_BLOCK, factors + n * KC_BLOCK / NIBBLES * LANES, x + m * x_stride,
                          spans + m * x_stride, x_stride, columns, sums + m * KC_TILE + n, 1, 4);
        }
    }
}

KC_INLINE void unpack_factors(const void *scales, int64_t first, int64_t blocks, int shift, float *to, const int32_t type) {
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t group = first + (i * NIBBLES >> shift);
        const float scale = element(scales, group, type);
        v_store(to + i * LANES, shift == 5 ? whole_halves(scale, element(scales, group + 1, type)) : v_all(scale));
    }
}

static void unpack_whole(const kc_matrix *m, int64_t row, int64_t column, int64_t count, int16_t *to, float *factors) {
    const stretch s = stretch_of(m, row, column);
    for (int64_t i = 0; i < count; i += NIBBLES) {
        vw values[WHOLE_VECTORS];
        if (m->bits == 4) w_nibbles(s.values + i / 2, values);
        else w_bytes(s.values + i, values);
        for (int v = 0; v < WHOLE_VECTORS; v++) w_store(to + i + v * WHOLE_LANES, values[v]);
    }
    const int64_t blocks = count / NIBBLES;
    if (m->element == KC_FLOAT32) unpack_factors(m->scales, s.group, blocks, s.shift, factors, KC_FLOAT32);
    else if (m->element == KC_FLOAT16) unpack_factors(m->scales, s.group, blocks, s.shift, factors, KC_FLOAT16);
    else unpack_factors(m->scales, s.group, blocks, s.shift, factors, KC_BFLOAT16);
}

/* Up to so many rows of input it is quicker without a tile. */
enum { MOST_FEW = 8 };

/* Scales or biases of some rows of weights as float32: where they lie, if they are stored so. */
KC_INLINE void float_rows(const kc_matrix *stored, const int64_t *rows, int64_t first, int64_t count, float *scratch,
                          const float **found) {
    for (int r = 0; r < WHOLE_WEIGHTS; r++) {
        found[r] = (const float *)stored->weight + rows[r] * stored->columns + first;
        if (stored->element == KC_FLOAT32) continue;
        found[r] = scratch + r * KC_BLOCK;
        unpack(stored, rows[r], first, count, scratch + r * KC_BLOCK);
    }
}

/* Biases times the sums over the groups, for few rows of input. */
KC_INLINE void collect_few_biases(const float *const *w, const float *x, int64_t x_stride, int64_t groups, vf *sums,
                                  const int inputs) {
    for (int64_t k = 0; k < groups; k += LANES) {
        for (int n = 0; n < WHOLE_WEIGHTS; n++) {
            const vf bias = groups - k < LANES ? v_part(w[n] + k, groups - k) : v_load(w[n] + k);
            for (int m = 0; m < inputs; m++) {
                vf *sum = &sums[m * WHOLE_WEIGHTS + n];
                *sum = v_fma(v_load(x + m * x_stride + k), bias, *sum);
            }
        }
    }
}

/* The same as collect_whole, from the stored values themselves: with few rows of input, a tile would be written for
 * little. Memory is asked for what lies `ahead` bytes further, which is needed next: rows are too short for the
 * processor to find out by itself. */
KC_INLINE void collect_few(const uint8_t *const *w, const float *const *scales, const int64_t group, const float *x,
                           const float *spans, int64_t x_stride, int64_t columns, vf *sums, const int inputs,
                           const int bits, int64_t ahead) {
    for (int64_t i = 0; i < columns; i += NIBBLES) {
        vw input[inputs][WHOLE_VECTORS];
        for (int m = 0; m < inputs; m++) {
            const int16_t *numbers = (const int16_t *)(x + m * x_stride) + i;
            for (int v = 0; v < WHOLE_VECTORS; v++) input[m][v] = w_load(numbers + v * WHOLE_LANES);
        }
        for (int n = 0; n < WHOLE_WEIGHTS; n++) {
            vw row[WHOLE_VECTORS];
            __builtin_prefetch(w[n] + i * bits / 8 + ahead, 0, 2);
            if (bits == 4) w_nibbles(w[n] + i / 2, row);
            else w_bytes(w[n] + i, row);
            const float *scale = scales[n] + i / group;
            const vf factor = group == SPAN ? whole_halves(scale[0], scale[1]) : v_all(scale[0]);
            for (int m = 0; m < inputs; m++) {
                vf *sum = &sums[m * WHOLE_WEIGHTS + n];
                const vf both = v_mul(factor, v_load(spans + m * x_stride + i / NIBBLES * LANES));
                *sum = v_fma(w_products(input[m], row), both, *sum);
            }
        }
    }
}

/* Some rows of weights with few rows of input; what is past the last row is computed like that, and dropped. */
KC_INLINE void multiply_few(const kc_product *p, int64_t input, int64_t first, int64_t last, float *scratch, vf *sums, const int inputs,
                            const int bits, const int group) {
    const kc_matrix *matrix = p->matrix;
    const int64_t groups = matrix->columns / group, ahead = WHOLE_WEIGHTS * matrix->columns * bits / 8;
    const kc_matrix scales = {.weight = matrix->scales, .columns = groups, .element = matrix->element};
    const kc_matrix biases = {.weight = matrix->biases, .columns = groups, .element = matrix->element};
    const float *found[WHOLE_WEIGHTS], *x = p->input + input * p->stride;
    int64_t rows[WHOLE_WEIGHTS];
    vf sum[inputs * WHOLE_WEIGHTS];
    for (int r = 0; r < WHOLE_WEIGHTS; r++) rows[r] = first + r < last ? first + r : last;
    for (int i = 0; i < inputs * WHOLE_WEIGHTS; i++) sum[i] = v_all(0);
    for (int64_t k = 0; k < groups; k += KC_BLOCK) {
        const int64_t count = groups - k < KC_BLOCK ? groups - k : KC_BLOCK;
        float_rows(&biases, rows, k, count, scratch, found);
        collect_few_biases(found, x + sums_at(matrix) + k, p->stride, count, sum, inputs);
    }
    for (int64_t k = 0; k < groups; k += KC_BLOCK) {
        const int64_t count = groups - k < KC_BLOCK ? groups - k : KC_BLOCK, column = k * group;
        const uint8_t *values[WHOLE_WEIGHTS];
        for (int r = 0; r < WHOLE_WEIGHTS; r++) {
            values[r] = (const uint8_t *)matrix->weight + (rows[r] * matrix->columns + column) * bits / 8;
        }
        float_rows(&scales, rows, k, count, scratch, found);
        collect_few(values, found, group, x + column / 2, x + factors_at(matrix) + column / NIBBLES * LANES, p->stride,
                    count * group, sum, inputs, bits, ahead);
    }
    for (int m = 0; m < inputs; m++) {
        for (int n = 0; n < WHOLE_WEIGHTS; n++) sums[m * KC_TILE + n] = sum[m * WHOLE_WEIGHTS + n];
    }
}

static void multiply_few_rows(const kc_product *p, int64_t m, int64_t inputs, int64_t n, int64_t rows, float *scratch,
                              vf *sums) {
    const kc_matrix *matrix = p->matrix;
    const int64_t first = p->which * matrix->rows + n, last = first + rows - 1;
    for (int64_t r = 0; r < rows; r += WHOLE_WEIGHTS) {
#define FEW_OF(inputs, bits, group) multiply_few(p, m, first + r, last, scratch, sums + r, inputs, bits, group)
#define FEW(inputs)                                                                                                     \
    case inputs:                                                                                                        \
        if (matrix->bits == 4) {                                                                                        \
            if (matrix->group == 32) FEW_OF(inputs, 4, 32);                                                             \
            else if (matrix->group == 64) FEW_OF(inputs, 4, 64);                                                        \
            else FEW_OF(inputs, 4, 128);                                                                                \
        } else {                                                                                                        \
            if (matrix->group == 32) FEW_OF(inputs, 8, 32);                                                             \
            else if (matrix->group == 64) FEW_OF(inputs, 8, 64);                                                        \
            else FEW_OF(inputs, 8, 128);                                                                                \
        }                                                                                                               \
        break
        switch (inputs) {
            FEW(1);
            FEW(2);
#if LANES == 16
            FEW(3);
            FEW(4);
#endif
        default: break;
        }
#undef FEW
#undef FEW_OF
    }
}

static void multiply_few_tile(const kc_product *p, int64_t m, int64_t inputs, int64_t n, int64_t rows, float *scratch,
                              vf *sums) {
    for (int64_t i = 0; i < inputs; i += WHOLE_INPUTS) {
        const int64_t few = inputs - i < WHOLE_INPUTS ? inputs - i : WHOLE_INPUTS;
        multiply_few_rows(p, m + i, few, n, rows, scratch, sums + i * KC_TILE);
    }
}

/* One tile: first the groups' biases times the sums over the groups, then the whole numbers. */
static void multiply_whole_tile(const kc_product *p, int64_t m, int64_t inputs, int64_t n, int64_t rows, float *scratch,
                                vf *sums) {
    const kc_matrix *matrix = p->matrix;
    const float *x = p->input + m * p->stride;
    const int64_t first = p->which * matrix->rows + n, groups = groups_in(matrix), weights = (rows + 7) / 8 * 8;
    for (int64_t k = 0; k < groups; k += KC_BLOCK) {
        const int64_t count = groups - k < KC_BLOCK ? groups - k : KC_BLOCK;
        const float *w[KC_TILE];
        for (int64_t r = 0; r < KC_TILE; r++) {
            w[r] = scratch + (r < rows ? r : rows - 1) * KC_BLOCK;
            if (r >= rows) continue;
            const kc_matrix biases = {.weight = matrix->biases, .columns = groups, .element = matrix->element};
            unpack(&biases, first + r, k, count, scratch + r * KC_BLOCK);
        }
        collect_panel(w, x + sums_at(matrix) + k, p->stride, (count + LANES - 1) / LANES * LANES, sums, k == 0, inputs,
                      weights);
    }
    int16_t *tile = (int16_t *)scratch;
    float *factors = scratch + KC_TILE * KC_BLOCK / 2;
    for (int64_t k = 0; k < matrix->columns; k += KC_BLOCK) {
        const int64_t columns = matrix->columns - k < KC_BLOCK ? matrix->columns - k : KC_BLOCK;
        for (int64_t r = 0; r < rows; r++) {
            unpack_whole(matrix, first + r, k, columns, tile + r * KC_BLOCK, factors + r * KC_BLOCK / NIBBLES * LANES);
        }
        collect_whole_panel(tile, factors, x + k / 2, x + factors_at(matrix) + k / NIBBLES * LANES, p->stride, columns, sums, inputs,
                            (rows + 3) / 4 * 4);
    }
}
#endif

static void multiply_tile(const kc_product *p, int64_t m, int64_t inputs, int64_t n, int64_t rows, float *tile, vf *sums) {
    const kc_matrix *matrix = p->matrix;
    const int direct = matrix->format == KC_DENSE && matrix->element == KC_FLOAT32;
    for (int64_t k = 0; k < matrix->columns; k += KC_BLOCK) {
        const int64_t columns = matrix->columns - k < KC_BLOCK ? matrix->columns - k : KC_BLOCK;
        const float *w[KC_TILE];
        for (int64_t r = 0; r < KC_TILE; r++) {
            /* What is past the last row is computed like that, and dropped. */
            const int64_t row = p->which * matrix->rows + n + (r < rows ? r : rows - 1);
            if (direct && columns % LANES == 0) {
                w[r] = (const float *)matrix->weight + row * matrix->columns + k;
                continue;
            }
            w[r] = tile + (r < rows ? r : rows - 1) * KC_BLOCK;
            if (r < rows) unpack(matrix, row, k, columns, tile + r * KC_BLOCK);
        }
        collect_panel(w, p->input + m * p->stride + k, p->stride, columns, sums, k == 0, inputs, (rows + 7) / 8 * 8);
    }
}

KC_INLINE void finish_row(const kc_matrix *matrix, const vf *sums, int64_t first, int64_t rows, float *output) {
    float results[KC_TILE];
    for (int n = 0; n < KC_TILE; n += 4) v_store_sums(results + n, sums[n], sums[n + 1], sums[n + 2], sums[n + 3]);
    for (int64_t n = 0; n < rows; n++) {
        output[first + n] = results[n] + (matrix->offset ? matrix->offset[first + n] : 0.0f);
    }
}

/* Output columns [first, end), in tiles of as many rows of weights. */
static void multiply(const kc_product *p, int64_t first, int64_t end, float *scratch) {
    vf *sums = (vf *)(scratch + KC_TILE * KC_BLOCK);
    for (int64_t m = 0; m < p->count; m += KC_PANEL) {
        const int64_t inputs = p->count - m < KC_PANEL ? p->count - m : KC_PANEL;
        for (int64_t n = first; n < end; n += KC_TILE) {
            const int64_t rows = end - n < KC_TILE ? end - n : KC_TILE;
#ifdef WHOLE
            if (is_whole(p->matrix) && inputs <= MOST_FEW) multiply_few_tile(p, m, inputs, n, rows, scratch, sums);
            else if (is_whole(p->matrix)) multiply_whole_tile(p, m, inputs, n, rows, scratch, sums);
            else
#endif
                multiply_tile(p, m, inputs, n, rows, scratch, sums);
            for (int64_t i = 0; i < inputs; i++) {
                const int64_t place = p->places ? p->places[m + i] : m + i;
                finish_row(p->matrix, sums + i * KC_TILE, n, rows, p->output + place * p->matrix->rows);
            }
        }
    }
}
