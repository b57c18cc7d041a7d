/* Gradients and updates of all parameters, and copies from the workspace to the caller's buffers.

   Q is the area of the parameters' gradients. Like that of the parameters, it has ROOM numbers. */

static __attribute__((unused)) void give_parameters(number *restrict w, double *restrict p)
{
    move(w, p, 1);
}

/* The distance from a parameter to its gradient is always Q - P. */
static void take_gradients(number *restrict w, const double *restrict q)
{
    move(w + (Q - P), (double *)q, 0);
}

static void give_gradients(number *restrict w, double *restrict q)
{
    move(w + (Q - P), q, 1);
}

static __attribute__((unused)) void update_all(number *restrict w, number rate, number batch)
{
    if (batch == 1)
        for (long long i = 0; i < ROOM; i += LANES)
            AT(w + P + i) -= ALL(rate) * AT(w + Q + i);
    else
        for (long long i = 0; i < ROOM; i += LANES)
            AT(w + P + i) -= ALL(rate) * AT(w + Q + i) / ALL(batch);
    for (long long i = 0; i < ROOM; i += LANES)
        AT(w + Q + i) = ALL(0.0);
}
