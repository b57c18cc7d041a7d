/* A pool of threads, shared by all kernels of a process.

   A helper is a thread that waits for a post: a function and the number of the part that it shall compute. It spins for
   SPIN_NS, because the next post usually follows within microseconds, and then sleeps until it is woken. The caller
   waits for the helpers in the same way. Only one division uses the helpers at a time; a division that comes meanwhile,
   from another thread, runs on its own thread alone.

   Whether to divide is decided by measurement. The first TRIALS runs of a division are timed on one thread. The pool
   starts its helpers when a division is first long enough to be worth it, and times empty divisions. From then on, a
   division is used only if it saves PAYS times as long as an empty one takes. If it does not, or if it takes longer
   than one thread LOSSES times in a row, because other processes use the cores, then it pauses for PAUSE_NS. Kernels
   compute the same bits either way.

   Helpers never end. They are not inherited by a forked child, which starts its own. */

#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <signal.h>
#include <time.h>

enum { MOST_HELPERS = 63, TRIALS = 3, SPIN_NS = 50000, LEAST_NS = 4000, PAYS = 2, PROBES = 16, LOSSES = 8, PAUSE_NS = 250000000 };

struct helper {
    /* Numbers of posts. A post is done when both are equal. */
    long long posted __attribute__((aligned(128)));
    long long done;
    int sleeps;       /* the helper waits for `wake` */
    int is_awaited;   /* the caller waits for `finished` */
    part_function *f; /* the post: written by the caller before `posted`, read by the helper after it */
    void *work;
    long long part, parts;
    pthread_mutex_t lock;
    pthread_cond_t wake, finished;
};

static struct helper helpers[MOST_HELPERS];
static int started;                      /* number of helpers */
static int refused;                      /* whether the system refused another one */
static long long empty_ns[MOST_HELPERS]; /* time of an empty division, by helpers - 1; 0: not measured */
static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER; /* held during a division */

#define GET(place) __atomic_load_n(&(place), __ATOMIC_SEQ_CST)
#define PUT(place, value) __atomic_store_n(&(place), value, __ATOMIC_SEQ_CST)

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void relax(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

/* Spin until *place differs from `old` (or equals it, if `until`), for SPIN_NS at most. Returns whether it does. */
static int spin(const long long *place, long long old, int until)
{
    long long end = 0;
    for (;;) {
        for (int n = 0; n < 64; n++) {
            if ((GET(*place) == old) == until)
                return 1;
            relax();
        }
        if (!end)
            end = now() + SPIN_NS;
        else if (now() > end)
            return 0;
    }
}

static void *help(void *its)
{
    struct helper *const h = its;
    for (long long seen = 0;;) {
        if (!spin(&h->posted, seen, 0)) {
            pthread_mutex_lock(&h->lock);
            PUT(h->sleeps, 1);
            while (GET(h->posted) == seen)
                pthread_cond_wait(&h->wake, &h->lock);
            PUT(h->sleeps, 0);
            pthread_mutex_unlock(&h->lock);
        }
        seen++;
        h->f(h->work, h->part, h->parts);
        PUT(h->done, seen);
        if (GET(h->is_awaited)) {
            pthread_mutex_lock(&h->lock);
            pthread_cond_signal(&h->finished);
            pthread_mutex_unlock(&h->lock);
        }
    }
    return 0;
}

static void post(struct helper *h, part_function *f, void *work, long long part, long long parts)
{
    h->f = f;
    h->work = work;
    h->part = part;
    h->parts = parts;
    PUT(h->posted, h->posted + 1);
    if (GET(h->sleeps)) {
        pthread_mutex_lock(&h->lock);
        pthread_cond_signal(&h->wake);
        pthread_mutex_unlock(&h->lock);
    }
}

static void await(struct helper *h)
{
    if (spin(&h->done, h->posted, 1))
        return;
    pthread_mutex_lock(&h->lock);
    PUT(h->is_awaited, 1);
    while (GET(h->done) != h->posted)
        pthread_cond_wait(&h->finished, &h->lock);
    PUT(h->is_awaited, 0);
    pthread_mutex_unlock(&h->lock);
}

/* Compute a part on each of that many helpers, and the first part here. The caller holds `busy`. */
static void run(part_function *f, void *work, long long count)
{
    for (long long n = 0; n < count; n++)
        post(&helpers[n], f, work, n + 1, count + 1);
    f(work, 0, count + 1);
    for (long long n = 0; n < count; n++)
        await(&helpers[n]);
}

#ifdef __GLIBC__ /* What its pthread_atfork calls, which is not in its shared library, but linked into each program. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library);
#define pthread_atfork(prepare, parent, child) __register_atfork(prepare, parent, child, 0)
#endif

/* In a forked child: no helper exists, and nobody holds a lock. */
static void forget(void)
{
    started = refused = 0;
    busy = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* Start helpers until there are that many, or the system refuses. The caller holds `busy`. */
static void start(long long count)
{
    static int registered;
    if (!registered) {
        registered = 1;
        if (pthread_atfork(0, 0, forget))
            refused = 1; /* without it, a forked child would wait for helpers that it does not have */
    }
    /* Helpers take no signals: those are for the interpreter's threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < count && !refused) {
        struct helper *h = &helpers[started];
        *h = (struct helper){
            .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .finished = PTHREAD_COND_INITIALIZER};
        pthread_t thread;
        if (pthread_create(&thread, 0, help, h))
            refused = 1;
        else {
            pthread_detach(thread);
            started++;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, 0);
}

static void nothing(void *work, long long part, long long parts)
{
    (void)work, (void)part, (void)parts;
}

/* The time of an empty division: the shortest of PROBES, measured once, because other processes may disturb some. The
   caller holds `busy`. */
static long long cost(long long count)
{
    if (empty_ns[count - 1])
        return empty_ns[count - 1];
    long long shortest = 0;
    for (int n = 0; n < PROBES; n++) {
        const long long begin = now();
        run(nothing, 0, count);
        const long long took = now() - begin;
        if (!n || took < shortest)
            shortest = took;
    }
    return empty_ns[count - 1] = shortest + 1;
}

/* What `divide` measured last: nanoseconds of an empty division among that many threads; 0 if it measured none. */
long long empty_division_ns(long long threads)
{
    return threads >= 2 && threads <= MOST_HELPERS + 1 ? empty_ns[threads - 2] : 0;
}

/* The number of helpers. */
long long helper_count(void)
{
    return started;
}

#define LOOK(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define NOTE(place, value) __atomic_store_n(&(place), value, __ATOMIC_RELAXED)

/* The time that the work takes on one thread; 0 if it was run just now to measure that. Programs in several of Python's
   threads may share a kernel, and so its gauges. */
static long long time_alone(struct gauge *gauge, part_function *f, void *work, long long units)
{
    const long long trials = LOOK(gauge->trials), shortest = LOOK(gauge->picoseconds);
    if (trials >= TRIALS)
        return shortest * units / 1000 + 1;
    const long long begin = now();
    f(work, 0, 1);
    const long long took = (now() - begin) * 1000 / units;
    if (!trials || took < shortest)
        NOTE(gauge->picoseconds, took);
    NOTE(gauge->trials, trials + 1);
    return 0;
}

/* Divide the work if that pays, and note whether it did. Returns whether it was done. The caller holds `busy`. */
static int try(struct gauge *gauge, part_function *f, void *work, long long count, long long alone_ns)
{
    const long long begin = now();
    if (begin < LOOK(gauge->pause_ends))
        return 0;
    start(count);
    if (count > started)
        count = started;
    const int pays = count >= 1 && alone_ns * count / (count + 1) > PAYS * cost(count);
    long long losses = LOSSES;
    if (pays) {
        const long long divided = now();
        run(f, work, count);
        losses = now() - divided > alone_ns ? LOOK(gauge->losses) + 1 : 0;
    } else if (count >= 1)
        empty_ns[count - 1] = 0; /* measure it again after the pause */
    NOTE(gauge->losses, losses % LOSSES);
    if (losses == LOSSES)
        NOTE(gauge->pause_ends, begin + PAUSE_NS);
    return pays;
}

void divide(struct gauge *gauge, part_function *f, void *work, long long units, long long threads)
{
    /* A negative number of threads divides without measuring, which only tests do. */
    const int always = threads < 0;
    long long count = (always ? -threads : threads) - 1, alone_ns = 0;
    int done = 0;
    if (count > MOST_HELPERS)
        count = MOST_HELPERS;
    if (count >= 1 && !always) {
        alone_ns = time_alone(gauge, f, work, units);
        if (!alone_ns)
            return;
    }
    if (count >= 1 && (always || alone_ns >= LEAST_NS) && !pthread_mutex_trylock(&busy)) {
        if (always) {
            start(count);
            run(f, work, count < started ? count : started);
            done = 1;
        } else
            done = try(gauge, f, work, count, alone_ns);
        pthread_mutex_unlock(&busy);
    }
    if (!done)
        f(work, 0, 1);
}
