/* Divisions of a step among threads. Without a pool, or where threads do not pay, one thread computes the only part. */

typedef void share(struct training *t, long long count, long long part, long long parts);

struct division {
    share *f;
    struct training *t;
    long long count; /* of rows taken together */
};

static divide_function *pool;
static long long most_threads = 1;

void use_pool(void *divide, long long threads)
{
    pool = (divide_function *)divide;
    most_threads = threads;
}

static void compute_part(void *work, long long part, long long parts)
{
    const struct division *d = (const struct division *)work;
    d->f(d->t, d->count, part, parts);
}

static void divide_work(struct training *t, share *f, long long count, struct gauge *gauge)
{
    struct division d = {f, t, count};
    if (pool && count > 0)
        pool(gauge, compute_part, &d, count, most_threads);
    else
        f(t, count, 0, 1);
}

/* One part of `update_all`. Parts begin at whole vectors. */
static UNUSED void update_part(number *restrict w, number rate, number batch, long long part, long long parts)
{
    const long long vectors = (ROOM + LANES - 1) / LANES;
    const long long first = vectors * part / parts * LANES, last = vectors * (part + 1) / parts * LANES;
    if (batch == 1)
        for (long long i = first; i < last; i += LANES)
            AT(w + P + i) -= ALL(rate) * AT(w + Q + i);
    else
        for (long long i = first; i < last; i += LANES)
            AT(w + P + i) -= ALL(rate) * AT(w + Q + i) / ALL(batch);
    for (long long i = first; i < last; i += LANES)
        AT(w + Q + i) = ALL(0.0);
}

/* The number of rows to take together: those left, in groups of equal size of at most `most`. */
static UNUSED long long rows_to_divide(const struct training *t, long long most)
{
    const long long steps = t->stretch->steps - t->step, rows = t->stretch->batch - t->taken;
    const long long left = steps < rows ? steps : rows;
    const long long groups = (left + most - 1) / most;
    return (left + groups - 1) / groups;
}
