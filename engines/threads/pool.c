/* A pool of threads, shared by all kernels of a process.

   A division is a round. The caller announces it and computes part 0, and helper n computes part n, if there is one. The
   helper that ends the round last tells the caller. A thread that waits spins first, because the next round usually
   begins within microseconds, and then sleeps. Only one caller uses the helpers at a time; a division that comes
   meanwhile, from another thread, runs on its own thread alone.

   Helpers never end. They are not inherited by a forked child, which starts its own. */

#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <signal.h>

enum { MOST_HELPERS = 63, SPINS = 2000 };

static struct helper {
    long long part, seen; /* the number of its part, and of the last round before it started */
} helpers[MOST_HELPERS];
static long long started; /* number of helpers */
static int refused;       /* whether the system refused another one */
static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER; /* held during a division */

/* The round: written by the caller before `current`, read by the helpers after it. */
static part_function *function;
static void *subject;
static long long count; /* of parts */

static long long current __attribute__((aligned(128)));  /* number of the round */
static long long left __attribute__((aligned(128)));     /* helpers that have not ended it */
static long long finished __attribute__((aligned(128))); /* number of the last round that all have ended */
static pthread_mutex_t sleep_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

#define GET(place) __atomic_load_n(&(place), __ATOMIC_SEQ_CST)
#define PUT(place, value) __atomic_store_n(&(place), value, __ATOMIC_SEQ_CST)

static void wait_for_change(const long long *place, long long old)
{
    for (int n = 0; n < SPINS; n++) {
        if (GET(*place) != old)
            return;
#if defined __x86_64__ || defined __i386__
        __builtin_ia32_pause();
#elif defined __aarch64__
        __asm__ volatile("yield");
#endif
    }
    pthread_mutex_lock(&sleep_lock);
    while (GET(*place) == old)
        pthread_cond_wait(&changed, &sleep_lock);
    pthread_mutex_unlock(&sleep_lock);
}

/* Change the place, and wake who sleeps. With the lock, nobody falls asleep between a look at the place and the change. */
static void change(long long *place, long long value)
{
    pthread_mutex_lock(&sleep_lock);
    PUT(*place, value);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&sleep_lock);
}

static void *help(void *argument)
{
    const struct helper *const h = argument;
    for (long long seen = h->seen;; seen++) {
        wait_for_change(&current, seen);
        if (h->part < count)
            function(subject, h->part, count);
        if (!__atomic_sub_fetch(&left, 1, __ATOMIC_SEQ_CST))
            change(&finished, seen + 1);
    }
    return 0;
}

#ifdef __GLIBC__ /* What its pthread_atfork calls, which is not in its shared library, but linked into each program. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library);
#define pthread_atfork(prepare, parent, child) __register_atfork(prepare, parent, child, 0)
#endif

/* In a forked child: no helper exists, and nobody holds a lock. */
static void forget(void)
{
    started = refused = 0;
    finished = current;
    busy = sleep_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

/* Start helpers until there are that many, or the system refuses. The caller holds `busy`. */
static void start(long long most)
{
    static int registered;
    if (!registered) {
        registered = 1;
        refused = pthread_atfork(0, 0, forget); /* without it, a forked child would wait for helpers that it lacks */
    }
    /* Helpers take no signals: those are for the interpreter's threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < most && !refused) {
        pthread_t thread;
        helpers[started] = (struct helper){started + 1, current};
        refused = pthread_create(&thread, 0, help, &helpers[started]);
        if (!refused) {
            pthread_detach(thread);
            started++;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, 0);
}

void divide(part_function *f, void *work, long long threads)
{
    if (threads < 2 || pthread_mutex_trylock(&busy)) {
        f(work, 0, 1);
        return;
    }
    const long long round = current;
    start(threads - 1 < MOST_HELPERS ? threads - 1 : MOST_HELPERS);
    function = f;
    subject = work;
    count = threads - 1 < started ? threads : started + 1;
    if (started) {
        PUT(left, started);
        change(&current, round + 1);
    }
    f(work, 0, count);
    if (started)
        wait_for_change(&finished, round);
    pthread_mutex_unlock(&busy);
}
