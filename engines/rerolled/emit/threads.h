/* Divisions of a step among threads. Without a pool, one thread computes the only part. */

struct division {
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

static void divide_work(part_function *f, struct training *t, long long count)
{
    struct division d = {t, count};
    if (pool)
        pool(f, &d, most_threads);
    else
        f(&d, 0, 1);
}

/* One part of `update_all`. Parts begin at whole vectors. */
static void update_part(number *restrict w, number rate, number batch, long long part, long long parts)
{
    const long long vectors = (ROOM + LANES - 1) / LANES;
    update_span(w, vectors * part / parts * LANES, vectors * (part + 1) / parts * LANES, rate, batch);
}

/* The number of rows to take together: those left, in groups of equal size of at most `most`. */
static long long rows_to_divide(const struct training *t, long long most)
{
    const long long left = rows_to_take(t, t->stretch->steps);
    const long long groups = (left + most - 1) / most;
    return (left + groups - 1) / groups;
}
