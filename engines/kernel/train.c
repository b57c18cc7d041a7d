/* Last part of every C kernel: updating, and the training loop.

   The loop runs turn(t) until all steps are done or a loss is not finite. A turn may train on several rows at once.
   Example: for a batch of 5, a kernel that takes 4 rows together needs two turns, of 4 rows and of 1.

   A kernel defines before this file:
     PARAMETERS   the number of parameters
     enter(t)     copy parameters and gradients from the caller's buffers
     turn(t)      train on the next row, or on several; return 0 if a loss is not finite, which ends the training
     leave(t)     copy parameters, gradients, the last row and its outputs to the caller's buffers */

void zero_grad(double *restrict q)
{
    for (long long i = 0; i < PARAMETERS; i++)
        q[i] = 0.0;
}

void update(double *restrict p, double *restrict q, double rate, double batch)
{
    if (batch == 1.0) /* dividing by 1.0 changes nothing, but takes most of the time */
        for (long long i = 0; i < PARAMETERS; i++)
            p[i] -= rate * q[i];
    else
        for (long long i = 0; i < PARAMETERS; i++)
            p[i] -= rate * q[i] / batch;
    zero_grad(q);
}

long long train(const struct buffers *b, const struct stretch *s)
{
    if (s->steps == 0)
        return 0;
    struct quotients quotients[s->column_count];
    for (long long n = 0; n < s->column_count; n++)
        for (long long byte = 0; byte < 256 && s->columns[n].kind == BYTES; byte++)
            quotients[n].of[byte] = (double)byte / s->columns[n].divisor;
    struct training t = {
        .stretch = s,
        .quotients = quotients,
        .x = b->x,
        .p = b->p,
        .w = b->w,
        .y = b->y,
        .q = b->q,
        .row = s->first_row,
        .taken = s->taken,
        .rates = s->rates,
    };
    enter(&t);
    while (t.step < s->steps && turn(&t))
        ;
    leave(&t);
    return t.step;
}
