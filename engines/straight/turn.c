/* Training for kernels that compute one row at a time in the caller's buffers, without copying. */

#define enter(t) ((void)0)
#define leave(t) ((void)0)

static int evaluate(struct training *t)
{
    take_row(t, t->x, 0);
    return record(t, forward(t->x, t->p, t->w, t->y));
}

static int turn(struct training *t)
{
    if (!evaluate(t))
        return 0;
    backward(t->x, t->p, t->w, t->q);
    if (batch_ends(t, 1))
        update(t->p, t->q, *t->rates++, (double)t->stretch->batch);
    return 1;
}
