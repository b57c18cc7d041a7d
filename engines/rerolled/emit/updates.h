/* Update the parameters from one place up to another. Q is the area of their gradients, as large as P, that of the
   parameters. Gradients become zero in the same pass, because those of a wide network come from far away. */
static __attribute__((unused)) void update_span(number *restrict w, long long first, long long stop, number rate,
                                                number batch)
{
    for (long long i = first; i < stop; i += LANES) {
        const vec change = ALL(rate) * AT(w + Q + i);
        AT(w + P + i) -= batch == 1 ? change : change / ALL(batch);
        AT(w + Q + i) = ALL(0.0);
    }
}
