/* What all calls of the library share: the kernels in use, and memory that is kept from call to call.
 *
 * Python calls the functions that are marked KC_API, in this file and its neighbours. Each does one thing, on
 * all threads, and returns when it is done. One caller at a time; a second one waits. They return 0, or say why
 * they did nothing.
 */
#include "calls.h"

#include <stdlib.h>

const kc_kernels *kc_used = &kc_plain;

/* ---- Which kernels ---- */

/* What an Intel or AMD processor has; as Python's Features. All 64-bit ARM processors have NEON. */
enum { HAS_AVX2 = 1, HAS_FMA = 2, HAS_F16C = 4, HAS_AVX512 = 8, HAS_VNNI = 16 };

static unsigned features(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const int wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return (__builtin_cpu_supports("avx2") ? HAS_AVX2 : 0) | (__builtin_cpu_supports("fma") ? HAS_FMA : 0) |
           (__builtin_cpu_supports("f16c") ? HAS_F16C : 0) | (wide ? HAS_AVX512 : 0) |
           (__builtin_cpu_supports("avx512vnni") ? HAS_VNNI : 0);
#else
    return 0;
#endif
}

static const kc_kernels *best_kernels(int most, unsigned has) {
#if defined(__x86_64__)
    const unsigned narrow = HAS_AVX2 | HAS_FMA | HAS_F16C, wide = narrow | HAS_AVX512 | HAS_VNNI;
    if (most >= 2 && (has & wide) == wide) return &kc_avx512;
    if (most >= 1 && (has & narrow) == narrow) return &kc_avx2;
#elif defined(__aarch64__)
    if (most >= 1) return &kc_neon;
#endif
    (void)most, (void)has;
    return &kc_plain;
}

/* The name of the best kernels, up to a level (0: plain C), for a processor that has so much. */
KC_API const char *kc_name_kernels(int most, unsigned has) { return best_kernels(most, has)->name; }

/* Take the best kernels that run here, up to a level, and give back their name. */
KC_API const char *kc_use_kernels(int most) {
    kc_used = best_kernels(most, features());
    return kc_used->name;
}

/* ---- Memory ---- */

typedef struct {
    float *start;
    size_t size; /* floats */
} space;

static space shared_space, thread_spaces[KC_MOST_THREADS];

static int reserve(space *s, size_t size) {
    if (size <= s->size) return KC_DONE;
    free(s->start);
    s->start = NULL;
    s->size = 0;
    void *start;
    if (posix_memalign(&start, KC_ALIGN, size * sizeof(float))) return KC_NO_MEMORY;
    s->start = start;
    s->size = size;
    return KC_DONE;
}

float *kc_shared_space(size_t floats) { return reserve(&shared_space, floats) ? NULL : shared_space.start; }

int kc_reserve_for_threads(int64_t floats) {
    for (int thread = 0; thread < kc_threads(); thread++) {
        if (reserve(&thread_spaces[thread], (size_t)floats)) return KC_NO_MEMORY;
    }
    return KC_DONE;
}

float *kc_thread_space(int thread) { return thread_spaces[thread].start; }

/* Give memory that was needed for long inputs back. */
KC_API void kc_release(void) {
    kc_enter();
    free(shared_space.start);
    shared_space = (space){NULL, 0};
    for (int thread = 0; thread < KC_MOST_THREADS; thread++) {
        free(thread_spaces[thread].start);
        thread_spaces[thread] = (space){NULL, 0};
    }
    kc_leave();
}

/* ---- Measuring ---- */

enum { READ_AT_ONCE = 1 << 17 };

typedef struct {
    const uint64_t *from;
    int64_t count;
    atomic_llong next;
    atomic_ullong sum;
} read_work;

static void do_read(void *argument, int thread) {
    read_work *work = argument;
    uint64_t sums[8] = {0};
    (void)thread;
    for (;;) {
        const int64_t first = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed) * READ_AT_ONCE;
        const int64_t end = first + READ_AT_ONCE < work->count ? first + READ_AT_ONCE : work->count / 8 * 8;
        if (first >= end) break;
        for (int64_t i = first; i < end; i += 8) {
            for (int j = 0; j < 8; j++) sums[j] += work->from[i + j];
        }
    }
    for (int j = 0; j < 8; j++) atomic_fetch_add(&work->sum, sums[j]);
}

/* Read so many bytes of memory on all threads, and nothing else. */
KC_API uint64_t kc_read(const void *from, int64_t bytes) {
    read_work work = {.from = from, .count = bytes / 8};
    kc_enter();
    kc_run(do_read, &work, 1);
    kc_leave();
    return atomic_load(&work.sum);
}
