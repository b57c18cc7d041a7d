/* Threads that divide the steps of one call of `train`. Its first division starts them, and its end ends them, so none
   runs when the kernel is unloaded. A forked child inherits none, but does not go on with the call either.

   A division is a round. The caller announces it and computes share 0, and helper n computes share n. A waiting thread
   spins first, because the next round usually begins within microseconds, and then lets other threads go first. */

#include <pthread.h>
#include <sched.h>

struct training;

/* Compute one of the shares of these rows, which may run at the same time. */
typedef void share_function(struct training *t, long long count, long long part, long long parts);

struct crew {
    struct helper {
        struct crew *crew;
        long long part;
        pthread_t thread;
    } helpers[THREADS];
    long long parts; /* of a division: one more than there are helpers; 0 before the first division */
    /* The round: written by the caller before `round`, read by the helpers after it. */
    share_function *compute; /* 0: the helpers end */
    struct training *t;
    long long count;
    long long round __attribute__((aligned(128))); /* its number */
    long long left __attribute__((aligned(128)));  /* helpers that have not ended it */
};

static void wait_until(const long long *place, long long value)
{
    enum { SPINS = 2000 };
    for (unsigned n = 0; __atomic_load_n(place, __ATOMIC_ACQUIRE) != value; n++) {
        if (n % SPINS == SPINS - 1)
            sched_yield();
#ifdef __x86_64__
        __builtin_ia32_pause();
#endif
    }
}

static void *help(void *argument)
{
    const struct helper *const h = argument;
    struct crew *const crew = h->crew;
    for (long long round = 1;; round++) {
        wait_until(&crew->round, round);
        if (!crew->compute)
            return 0;
        crew->compute(crew->t, crew->count, h->part, crew->parts);
        __atomic_sub_fetch(&crew->left, 1, __ATOMIC_RELEASE);
    }
}

/* Start the helpers, or as many as the system allows. */
static void start_helpers(struct crew *crew)
{
    for (crew->parts = 1; crew->parts < THREADS; crew->parts++) {
        struct helper *const h = &crew->helpers[crew->parts];
        h->crew = crew;
        h->part = crew->parts;
        if (pthread_create(&h->thread, 0, help, h))
            return;
    }
}

static void divide(struct crew *crew, share_function *compute, struct training *t, long long count)
{
    if (!crew->parts)
        start_helpers(crew);
    crew->compute = compute;
    crew->t = t;
    crew->count = count;
    crew->left = crew->parts - 1;
    __atomic_add_fetch(&crew->round, 1, __ATOMIC_RELEASE);
    compute(t, count, 0, crew->parts);
    wait_until(&crew->left, 0);
}

static void end_helpers(struct crew *crew)
{
    crew->compute = 0;
    __atomic_add_fetch(&crew->round, 1, __ATOMIC_RELEASE);
    for (long long part = 1; part < crew->parts; part++)
        pthread_join(crew->helpers[part].thread, 0);
}
