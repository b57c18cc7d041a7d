/* Copies between the caller's buffers and the workspace.

   The generated code defines P and Q (the areas of parameters and of their gradients), ROOM (doubles in each area) and
   `move`, which copies all parameters between the caller's order and the loops' order. */

static void move(double *restrict w, double *restrict theirs, int out);

/* A workspace starts at a multiple of 64 bytes, because a vector that crosses a cache line takes twice the time. */
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

/* The distance from a parameter to its gradient is always Q - P. */
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
