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

/* Update the parameters from one place up to another. */
static __attribute__((unused)) void update_span(number *restrict w, long long first, long long stop, number rate,
                                                number batch)
{
    /* Gradients become zero in the same pass, because those of a wide network come from far away. */
    for (long long i = first; i < stop; i += LANES) {
        const vec change = ALL(rate) * AT(w + Q + i);
        AT(w + P + i) -= batch == 1 ? change : change / ALL(batch);
        AT(w + Q + i) = ALL(0.0);
    }
}
