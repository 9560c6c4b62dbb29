/* A pool of threads that wait for work: awake for a moment after the last, then asleep.
 *
 * The thread that calls does work itself, and never waits for a helper that has not begun: on a
 * computer that is busy with other things, one may be late. So work is cut in pieces that whoever
 * is there takes one after another; when the caller finds none left it closes the gate, and waits
 * for those who are inside.
 *
 * There is one caller at a time. A child of fork() has no threads of its parent's; it starts its
 * own when it first has work for them.
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
    int asleep; /* under the lock */
    atomic_int ending;
    kc_work work;
    void *argument;
    atomic_ullong gate;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .called = PTHREAD_COND_INITIALIZER, .wanted = 1, .running = 1};

/* The gate: the number of the call in the upper half, whether it is open, and how many are inside. */
#define OPEN (1ull << 31)
#define INSIDE (OPEN - 1)
#define CALL(gate) ((unsigned)((gate) >> 32))

typedef struct {
    int number;
    unsigned seen;
} helper;
static helper helpers[KC_MOST_THREADS];

static void wait_for_call(unsigned seen) {
    for (int turn = 0; turn < TURNS_AWAKE; turn++) {
        if (CALL(atomic_load_explicit(&pool.gate, memory_order_acquire)) != seen) return;
        BREATHE();
    }
    pthread_mutex_lock(&pool.lock);
    pool.asleep++;
    while (CALL(atomic_load(&pool.gate)) == seen) pthread_cond_wait(&pool.called, &pool.lock);
    pool.asleep--;
    pthread_mutex_unlock(&pool.lock);
}

/* Go inside, if the gate of this call is still open. */
static int enter_gate(unsigned call) {
    unsigned long long gate = atomic_load(&pool.gate);
    while (CALL(gate) == call && (gate & OPEN)) {
        if (atomic_compare_exchange_weak(&pool.gate, &gate, gate + 1)) return 1;
    }
    return 0;
}

static void *help(void *argument) {
    helper *self = argument;
    for (;;) {
        wait_for_call(self->seen);
        self->seen = CALL(atomic_load(&pool.gate));
        if (atomic_load(&pool.ending)) return NULL;
        if (!enter_gate(self->seen)) continue;
        pool.work(pool.argument, self->number);
        atomic_fetch_sub_explicit(&pool.gate, 1, memory_order_release);
    }
}

static void call_helpers(unsigned long long open) {
    const unsigned call = CALL(atomic_load(&pool.gate)) + 1;
    atomic_store(&pool.gate, (unsigned long long)call << 32 | open);
    pthread_mutex_lock(&pool.lock);
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
        next->seen = CALL(atomic_load(&pool.gate));
        if (pthread_create(&pool.threads[pool.running], NULL, help, next)) {
            pool.wanted = pool.running; /* Fewer have to do. */
            break;
        }
        pool.running++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void end_helpers(void) {
    atomic_store(&pool.ending, 1);
    call_helpers(0);
    for (int number = 1; number < pool.running; number++) pthread_join(pool.threads[number], NULL);
    atomic_store(&pool.ending, 0);
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
    atomic_store(&pool.ending, 0);
    atomic_store(&pool.gate, 0);
}

void kc_enter(void) { pthread_mutex_lock(&one_caller); }
void kc_leave(void) { pthread_mutex_unlock(&one_caller); }

int kc_threads(void) { return pool.wanted; }

void kc_run(kc_work work, void *argument, int together) {
    if (!together || pool.wanted == 1) {
        work(argument, 0);
        return;
    }
    if (pool.running < pool.wanted) start_helpers();
    pool.work = work;
    pool.argument = argument;
    call_helpers(OPEN);
    work(argument, 0);
    atomic_fetch_and(&pool.gate, ~OPEN);
    while (atomic_load_explicit(&pool.gate, memory_order_acquire) & INSIDE) BREATHE();
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
