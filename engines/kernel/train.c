/* Last part of every C kernel: updating, and the training loop.

   The loop runs turn(t), or evaluate(t) for a stretch that does not learn, until all steps are done or a loss is not
   finite. A turn may train on several rows at once. Example: for a batch of 5, a kernel that takes 4 rows together needs
   two turns, of 4 rows and of 1.

   A kernel defines before this file:
     PARAMETERS     the number of parameters
     enter(t)       copy parameters and gradients from the caller's buffers
     turn(t)        train on the next row, or on several; return 0 if a loss is not finite, which ends the training
     evaluate(t)    run the forward pass over the next row, and copy its outputs; return 0 if its loss is not finite
     leave(t)       copy parameters, gradients, the last row and its outputs to the caller's buffers
     WEIGHTS        if it has its own parameters: their array, which `enter` copies from */

#ifndef WEIGHTS
#define WEIGHTS b->p
#endif

void update(double *restrict p, double *restrict q, double rate, double batch)
{
    if (batch == 1.0) /* dividing by 1.0 changes nothing, but takes most of the time */
        for (long long i = 0; i < PARAMETERS; i++) {
            p[i] -= rate * q[i];
            q[i] = 0.0;
        }
    else
        for (long long i = 0; i < PARAMETERS; i++) {
            p[i] -= rate * q[i] / batch;
            q[i] = 0.0;
        }
}

long long train(const struct buffers *b, const struct stretch *s)
{
    if (s->steps == 0)
        return 0;
    struct training t = {
        .stretch = s,
        .x = b->x,
        .p = (double *)WEIGHTS,
        .w = b->w,
        .y = b->y,
        .q = b->q,
        .row = s->first_row,
        .taken = s->taken,
        .rates = s->rates,
    };
    enter(&t);
    do
        t.y = b->y + t.step * s->y_step;
    while ((s->learns ? turn(&t) : evaluate(&t)) && t.step < s->steps);
    leave(&t);
    return t.step;
}
