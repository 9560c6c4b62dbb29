/* What is done row by row: norms, activations, sums. */
#include <stdatomic.h>

#include "calls.h"

static void do_rows(void *argument, int thread) {
    kc_row_work *w = argument;
    (void)thread;
    for (;;) {
        const int64_t row = atomic_fetch_add_explicit(&w->next, 1, memory_order_relaxed);
        if (row >= w->rows) return;
        const float *x = w->x + row * w->width, *other = w->weight + (w->weight ? row * w->width : 0);
        float *y = w->y + row * w->width;
        if (w->kind == KC_RMS_NORM) kc_used->rms_norm(x, w->weight, y, w->width, w->eps);
        else if (w->kind == KC_LAYER_NORM) kc_used->layer_norm(x, w->weight, w->bias, y, w->width, w->eps);
        else if (w->kind == KC_ADD) kc_used->add(x, other, y, w->width);
        else kc_used->activate(w->kind - KC_ACTIVATE, x, other, y, w->width);
    }
}

void kc_run_rows(kc_row_work work) {
    atomic_init(&work.next, 0);
    kc_run(do_rows, &work, work.rows > 1 && work.rows * work.width > KC_SMALL);
}

KC_API void kc_rms_norm(const float *x, const float *weight, float *y, int64_t rows, int64_t width, float eps) {
    kc_enter();
    kc_run_rows((kc_row_work){x, weight, NULL, y, rows, width, eps, KC_RMS_NORM});
    kc_leave();
}

KC_API void kc_layer_norm(const float *x, const float *weight, const float *bias, float *y, int64_t rows, int64_t width,
                          float eps) {
    kc_enter();
    kc_run_rows((kc_row_work){x, weight, bias, y, rows, width, eps, KC_LAYER_NORM});
    kc_leave();
}

/* y = f(x), or f(x) · factor where there is one. */
KC_API void kc_activate(int32_t kind, const float *x, const float *factor, float *y, int64_t rows, int64_t width) {
    kc_enter();
    kc_run_rows((kc_row_work){x, factor, NULL, y, rows, width, 0, KC_ACTIVATE + kind});
    kc_leave();
}
