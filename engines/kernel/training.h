/* State of the training loop, which each turn reads and changes. */

struct training {
    const struct stretch *stretch;
    double *x, *p, *y, *q;
    double *w;
    long long step;      /* number of recorded losses, all finite */
    long long row;       /* the next row */
    long long taken;     /* rows since the last update */
    const double *rates; /* of the updates to come */
#ifdef LANES
    struct {
        double rate;            /* of the current or waiting update */
        int gradients_are_zero; /* set by the first update, and so at each later start of a batch */
        int due;                /* whether an update waits for the next row */
        double bound;           /* on the magnitude of weights whose inputs may be skipped */
    } state;                    /* of recovered loops; without it, TCC's straight lines take 3 % less time */
#endif
#ifdef THREADS
    struct crew crew; /* see threads.h */
#endif
};

/* Read the row `ahead` rows after the next one. */
static void take_row(const struct training *t, double *restrict x, long long ahead)
{
    const struct stretch *s = t->stretch;
    set_input(x, s->columns, s->column_count, ahead ? (t->row + ahead) % s->rows : t->row);
}

/* The number of rows to take together: as many as are left in the batch and in the stretch, up to `most`. */
static __attribute__((unused)) long long rows_to_take(const struct training *t, long long most)
{
    const long long steps = t->stretch->steps - t->step, rows = t->stretch->batch - t->taken;
    const long long left = steps < rows ? steps : rows;
    return left < most ? left : most;
}

/* Record the loss of the current row. If it is finite, advance to the next row and return 1. */
static int record(struct training *t, double loss)
{
    t->stretch->losses[t->step] = loss;
    if (loss - loss != 0.0)
        return 0;
    t->step++;
    if (++t->row == t->stretch->rows)
        t->row = 0;
    return 1;
}

/* Count rows whose gradients were added. Returns whether they complete the batch. */
static __attribute__((unused)) int batch_ends(struct training *t, long long rows)
{
    t->taken += rows;
    if (t->taken < t->stretch->batch)
        return 0;
    t->taken = 0;
    return 1;
}
