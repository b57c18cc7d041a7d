/* The way into the workspace and out of it, around the loops of a graph.

   The generated code defines P, Q and ROOM (where parameters and their gradients lie, and how many doubles each area
   has) and `move`, which copies all parameters between the caller's order and the loops'. */

static void move(double *restrict w, double *restrict theirs, int out);

/* A workspace begins at a multiple of 64 bytes: a vector that crosses a cache line takes twice the time. */
static double *aligned(double *w)
{
    return (double *)(((unsigned long long)w + 63) & ~63ULL);
}

static void take_inputs(double *restrict w, const double *restrict x)
{
    for (long long i = 0; i < INPUTS; i++)
        w[i] = x[i];
}

static void give_inputs(const double *restrict w, double *restrict x)
{
    for (long long i = 0; i < INPUTS; i++)
        x[i] = w[i];
}

static void take_parameters(double *restrict w, const double *restrict p)
{
    move(w, (double *)p, 0);
}

static void give_parameters(double *restrict w, double *restrict p)
{
    move(w, p, 1);
}

/* Each gradient lies as far behind its parameter as Q is behind P. */
static void take_gradients(double *restrict w, const double *restrict q)
{
    move(w + (Q - P), (double *)q, 0);
}

static void give_gradients(double *restrict w, double *restrict q)
{
    move(w + (Q - P), q, 1);
}

static void update_all(double *restrict w, double rate, double batch)
{
    if (batch == 1.0)
        for (long long i = 0; i < ROOM; i += LANES)
            AT(w + P + i) -= ALL(rate) * AT(w + Q + i);
    else
        for (long long i = 0; i < ROOM; i += LANES)
            AT(w + P + i) -= ALL(rate) * AT(w + Q + i) / ALL(batch);
    for (long long i = 0; i < ROOM; i += LANES)
        AT(w + Q + i) = ALL(0.0);
}
