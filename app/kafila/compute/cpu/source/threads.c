/* A pool of threads that wait for work: awake for a moment after the last, then asleep.
 *
 * The thread that calls takes part in the work itself. Nothing here locks while work is done, and
 * there is one caller at a time (see calls.c). A child of fork() has no threads of its parent's;
 * it starts its own when it first has work for them.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "kafila_cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define BREATHE() _mm_pause()
#elif defined(__aarch64__)
#define BREATHE() __asm__ volatile("yield")
#else
#define BREATHE() ((void)0)
#endif

enum { TURNS_AWAKE = 2000 };

static pthread_mutex_t one_caller = PTHREAD_MUTEX_INITIALIZER;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t called;
    pthread_t threads[KC_MOST_THREADS];
    int wanted, running;
    int ending, asleep; /* under the lock */
    kc_work work;
    void *argument;
    atomic_uint call;
    atomic_int busy;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .called = PTHREAD_COND_INITIALIZER, .wanted = 1, .running = 1};

typedef struct {
    int number;
    unsigned seen;
} helper;
static helper helpers[KC_MOST_THREADS];

static void wait_for_call(unsigned seen) {
    for (int turn = 0; turn < TURNS_AWAKE; turn++) {
        if (atomic_load_explicit(&pool.call, memory_order_acquire) != seen) return;
        BREATHE();
    }
    pthread_mutex_lock(&pool.lock);
    pool.asleep++;
    while (atomic_load_explicit(&pool.call, memory_order_acquire) == seen) pthread_cond_wait(&pool.called, &pool.lock);
    pool.asleep--;
    pthread_mutex_unlock(&pool.lock);
}

static void *help(void *argument) {
    helper *self = argument;
    for (;;) {
        wait_for_call(self->seen);
        self->seen++;
        if (pool.ending) return NULL;
        pool.work(pool.argument, self->number, pool.running);
        atomic_fetch_sub_explicit(&pool.busy, 1, memory_order_release);
    }
}

static void call_helpers(void) {
    pthread_mutex_lock(&pool.lock);
    atomic_fetch_add_explicit(&pool.call, 1, memory_order_release);
    if (pool.asleep) pthread_cond_broadcast(&pool.called);
    pthread_mutex_unlock(&pool.lock);
}

static void start_helpers(void) {
    /* Signals are for the threads of the program. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool.running < pool.wanted) {
        helper *next = &helpers[pool.running];
        next->number = pool.running;
        next->seen = atomic_load(&pool.call);
        if (pthread_create(&pool.threads[pool.running], NULL, help, next)) {
            pool.wanted = pool.running; /* Fewer have to do. */
            break;
        }
        pool.running++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void end_helpers(void) {
    pool.ending = 1;
    call_helpers();
    for (int number = 1; number < pool.running; number++) pthread_join(pool.threads[number], NULL);
    pool.ending = 0;
    pool.running = 1;
}

static void forget_helpers(void) {
    /* In the child of a fork: the parent's threads are not here, and may have held the lock. */
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t called = PTHREAD_COND_INITIALIZER;
    one_caller = lock;
    pool.lock = lock;
    pool.called = called;
    pool.running = 1;
    pool.asleep = 0;
    pool.ending = 0;
    atomic_store(&pool.busy, 0);
}

void kc_enter(void) { pthread_mutex_lock(&one_caller); }
void kc_leave(void) { pthread_mutex_unlock(&one_caller); }

int kc_threads(void) { return pool.wanted; }

void kc_run(kc_work work, void *argument, int together) {
    if (!together || pool.wanted == 1) {
        work(argument, 0, 1);
        return;
    }
    if (pool.running < pool.wanted) start_helpers();
    pool.work = work;
    pool.argument = argument;
    atomic_store(&pool.busy, pool.running - 1);
    if (pool.running > 1) call_helpers();
    work(argument, 0, pool.running);
    while (atomic_load_explicit(&pool.busy, memory_order_acquire)) BREATHE();
}

/* How many threads to use, the caller included; those there are end first. */
KC_API int kc_use_threads(int count) {
    static int watching = 0;
    if (!watching) {
        watching = 1;
        pthread_atfork(NULL, NULL, forget_helpers);
    }
    kc_enter();
    if (pool.running > 1) end_helpers();
    pool.wanted = count < 1 ? 1 : count > KC_MOST_THREADS ? KC_MOST_THREADS : count;
    kc_leave();
    return pool.wanted;
}
