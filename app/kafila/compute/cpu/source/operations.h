/* Norms, activations and attention, for one kind of vector. Included behind multiply.h. */
#include <float.h>

/* e^x to about two units in the last place; 0 and infinity where they belong; no number stays none. */
KC_INLINE vf exponential(vf x) {
    x = v_min(v_all(89.0f), x);
    x = v_max(v_all(-104.0f), x);
    const vf n = v_round(v_mul(x, v_all(1.44269504f)));
    vf r = v_fma(n, v_all(-0.693145752f), x);
    r = v_fma(n, v_all(-1.42860677e-6f), r);
    vf p = v_all(1.3981999e-3f);
    p = v_fma(p, r, v_all(8.3334519e-3f));
    p = v_fma(p, r, v_all(4.1665795e-2f));
    p = v_fma(p, r, v_all(1.6666667e-1f));
    p = v_fma(p, r, v_all(0.5f));
    p = v_fma(p, r, v_all(1.0f));
    p = v_fma(p, r, v_all(1.0f));
    return v_scale2(p, n);
}

static void rms_norm(const float *x, const float *weight, float *y, int64_t width, float eps) {
    vf squares = v_all(0);
    const int64_t whole = width / LANES * LANES, rest = width - whole;
    for (int64_t i = 0; i < whole; i += LANES) squares = v_fma(v_load(x + i), v_load(x + i), squares);
    if (rest) squares = v_fma(v_part(x + whole, rest), v_part(x + whole, rest), squares);
    const vf factor = v_all(1.0f / sqrtf(total(squares) / (float)width + eps));
    for (int64_t i = 0; i < whole; i += LANES) {
        const vf scaled = v_mul(v_load(x + i), factor);
        v_store(y + i, weight ? v_mul(scaled, v_load(weight + i)) : scaled);
    }
    if (rest) {
        const vf scaled = v_mul(v_part(x + whole, rest), factor);
        v_store_part(y + whole, weight ? v_mul(scaled, v_part(weight + whole, rest)) : scaled, rest);
    }
}

static void layer_norm(const float *x, const float *weight, const float *bias, float *y, int64_t width, float eps) {
    const int64_t whole = width / LANES * LANES;
    vf sum = v_all(0), squares = v_all(0);
    float rest = 0, rest_squares = 0;
    for (int64_t i = 0; i < whole; i += LANES) sum = v_add(sum, v_load(x + i));
    for (int64_t i = whole; i < width; i++) rest += x[i];
    const float mean = (total(sum) + rest) / (float)width;
    for (int64_t i = 0; i < whole; i += LANES) {
        const vf away = v_sub(v_load(x + i), v_all(mean));
        squares = v_fma(away, away, squares);
    }
    for (int64_t i = whole; i < width; i++) rest_squares += (x[i] - mean) * (x[i] - mean);
    const float factor = 1.0f / sqrtf((total(squares) + rest_squares) / (float)width + eps);
    for (int64_t i = 0; i < width; i++) {
        float value = (x[i] - mean) * factor;
        if (weight) value *= weight[i];
        if (bias) value += bias[i];
        y[i] = value;
    }
}

KC_INLINE vf activated(int32_t kind, vf x) {
    if (kind == KC_RELU2) {
        const vf positive = v_max(v_all(0), x);
        return v_mul(positive, positive);
    }
    vf inner = x;
    if (kind == KC_GELU_TANH) {
        /* (1 + tanh u) / 2 = 1 / (1 + e^(-2u)) */
        const vf cubic = v_mul(v_mul(x, x), v_all(0.044715f));
        inner = v_mul(v_all(1.59576912f), v_fma(cubic, x, x));
    }
    return v_div(x, v_add(v_all(1.0f), exponential(v_sub(v_all(0), inner))));
}

/* y = f(x), or f(x) · factor. */
static void activate(int32_t kind, const float *x, const float *factor, float *y, int64_t count) {
    if (kind == KC_GELU) {
        for (int64_t i = 0; i < count; i++) {
            const float value = 0.5f * x[i] * (1.0f + erff(x[i] * 0.707106781f));
            y[i] = factor ? value * factor[i] : value;
        }
        return;
    }
    for (int64_t i = 0; i < count; i += LANES) {
        const int64_t n = count - i < LANES ? count - i : LANES;
        if (n == LANES) {
            const vf value = activated(kind, v_load(x + i));
            v_store(y + i, factor ? v_mul(value, v_load(factor + i)) : value);
        } else {
            const vf value = activated(kind, v_part(x + i, n));
            v_store_part(y + i, factor ? v_mul(value, v_part(factor + i, n)) : value, n);
        }
    }
}

static void add(const float *a, const float *b, float *y, int64_t count) {
    for (int64_t i = 0; i < count; i++) y[i] = a[i] + b[i];
}

/* ---- Attention: a few query rows at a time against all keys, then all values ---- */

enum { QUERIES = 4, VALUE_VECTORS = LANES == 16 ? 4 : 2 };

KC_INLINE void score_keys(const float *const *q, const float *const *k, int64_t width, float *const *scores, int64_t at,
                          const int queries) {
    vf sum[queries][4];
    for (int m = 0; m < queries; m++) {
        for (int n = 0; n < 4; n++) sum[m][n] = v_all(0);
    }
    for (int64_t i = 0; i < width; i += LANES) {
        const int64_t n = width - i;
        vf key[4];
        for (int t = 0; t < 4; t++) key[t] = n < LANES ? v_part(k[t] + i, n) : v_load(k[t] + i);
        for (int m = 0; m < queries; m++) {
            const vf query = n < LANES ? v_part(q[m] + i, n) : v_load(q[m] + i);
            for (int t = 0; t < 4; t++) sum[m][t] = v_fma(query, key[t], sum[m][t]);
        }
    }
    for (int m = 0; m < queries; m++) v_store_sums(scores[m] + at, sum[m][0], sum[m][1], sum[m][2], sum[m][3]);
}

KC_INLINE void mix_values(const float *v, int64_t step, int64_t width, const float *const *weights, int64_t keys,
                          float *const *y, const float *factors, const int queries) {
    for (int64_t i = 0; i < width; i += LANES * VALUE_VECTORS) {
        vf sum[queries][VALUE_VECTORS];
        for (int m = 0; m < queries; m++) {
            for (int j = 0; j < VALUE_VECTORS; j++) sum[m][j] = v_all(0);
        }
        const int64_t n = width - i;
        if (n >= LANES * VALUE_VECTORS) {
            for (int64_t t = 0; t < keys; t++) {
                vf value[VALUE_VECTORS];
                for (int j = 0; j < VALUE_VECTORS; j++) value[j] = v_load(v + t * step + i + j * LANES);
                for (int m = 0; m < queries; m++) {
                    const vf weight = v_all(weights[m][t]);
                    for (int j = 0; j < VALUE_VECTORS; j++) sum[m][j] = v_fma(weight, value[j], sum[m][j]);
                }
            }
        } else {
            for (int64_t t = 0; t < keys; t++) {
                for (int j = 0; j * LANES < n; j++) {
                    const int64_t rest = n - j * LANES;
                    const float *from = v + t * step + i + j * LANES;
                    const vf value = rest < LANES ? v_part(from, rest) : v_load(from);
                    for (int m = 0; m < queries; m++) sum[m][j] = v_fma(v_all(weights[m][t]), value, sum[m][j]);
                }
            }
        }
        for (int m = 0; m < queries; m++) {
            for (int j = 0; j < VALUE_VECTORS && j * LANES < n; j++) {
                const int64_t rest = n - j * LANES;
                const vf result = v_mul(sum[m][j], v_all(factors[m]));
                if (rest < LANES) v_store_part(y[m] + i + j * LANES, result, rest);
                else v_store(y[m] + i + j * LANES, result);
            }
        }
    }
}

/* Scores become weights that are yet to be divided by their sum, whose reciprocal is given back. */
static float weigh(const kc_attention *a, int64_t mask_at, float sink, int64_t seen, int64_t keys, float *scores) {
    const int64_t step = a->mask_strides[3];
    for (int64_t t = 0; t < seen; t++) {
        float score = scores[t] * a->scale;
        if (a->allowed && !a->allowed[mask_at + t * step]) score = -FLT_MAX;
        if (a->added) score += a->added[mask_at + t * step];
        scores[t] = score;
    }
    for (int64_t t = seen; t < keys + LANES; t++) scores[t] = -INFINITY;
    vf highest = v_all(-INFINITY);
    for (int64_t t = 0; t < seen; t += LANES) highest = v_max(highest, v_load(scores + t));
    float each[LANES], top = sink;
    v_store(each, highest);
    for (int i = 0; i < LANES; i++) top = each[i] > top ? each[i] : top;
    vf sum = v_all(0);
    for (int64_t t = 0; t < seen; t += LANES) {
        const vf weight = exponential(v_sub(v_load(scores + t), v_all(top)));
        v_store(scores + t, weight);
        sum = v_add(sum, weight);
    }
    for (int64_t t = seen; t < keys; t++) scores[t] = 0;
    return 1.0f / (total(sum) + expf(sink - top));
}

KC_INLINE void attend_rows(const kc_attention *a, const kc_share *s, int64_t first, float *scratch, const int queries) {
    const int64_t key_head = s->head / (a->heads / a->key_heads), before = a->keys_length - a->length;
    const float *k = a->keys + s->batch * a->key_strides[0] + key_head * a->key_strides[1];
    const float *v = a->values + s->batch * a->value_strides[0] + key_head * a->value_strides[1];
    const float *q[QUERIES], *weights[QUERIES];
    float *scores[QUERIES], *y[QUERIES], factors[QUERIES];
    int64_t head[QUERIES], row[QUERIES], seen[QUERIES], keys = 0;
    for (int m = 0; m < queries; m++) {
        head[m] = s->head + (first + m) / s->rows;
        row[m] = s->row + (first + m) % s->rows;
        q[m] = a->queries + s->batch * a->query_strides[0] + head[m] * a->query_strides[1] + row[m] * a->query_strides[2];
        y[m] = a->output + ((s->batch * a->length + row[m]) * a->heads + head[m]) * a->value_width;
        weights[m] = scores[m] = scratch + m * (a->keys_length + 32);
        seen[m] = a->causal ? before + row[m] + 1 : a->keys_length;
        keys = seen[m] > keys ? seen[m] : keys;
    }
    for (int64_t t = 0; t < keys; t += 4) {
        const float *near[4];
        for (int64_t i = 0; i < 4; i++) near[i] = k + (t + i < keys ? t + i : keys - 1) * a->key_strides[2];
        score_keys(q, near, a->width, scores, t, queries);
    }
    for (int m = 0; m < queries; m++) {
        const int64_t *strides = a->mask_strides;
        const int64_t mask_at = s->batch * strides[0] + head[m] * strides[1] + row[m] * strides[2];
        factors[m] = weigh(a, mask_at, a->sinks ? a->sinks[head[m]] : -INFINITY, seen[m], keys, scores[m]);
    }
    mix_values(v, a->value_strides[2], a->value_width, weights, keys, y, factors, queries);
}

static void attend(const kc_attention *a, const kc_share *s, float *scratch) {
    const int64_t count = s->heads * s->rows;
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) attend_rows(a, s, i, scratch, 4);
    switch (count - i) {
    case 3: attend_rows(a, s, i, scratch, 3); break;
    case 2: attend_rows(a, s, i, scratch, 2); break;
    case 1: attend_rows(a, s, i, scratch, 1); break;
    default: break;
    }
}

#define KC_TABLE(id, title)                                                                                             \
    const kc_kernels id = {                                                                                             \
        .name = title,                                                                                                  \
        .lanes = LANES,                                                                                                 \
        .arrange = arrange,                                                                                             \
        .arrangement = arrangement,                                                                                     \
        .stride = stride,                                                                                               \
        .multiply = multiply,                                                                                           \
        .rms_norm = rms_norm,                                                                                           \
        .layer_norm = layer_norm,                                                                                       \
        .activate = activate,                                                                                           \
        .attend = attend,                                                                                               \
        .add = add,                                                                                                     \
    }
