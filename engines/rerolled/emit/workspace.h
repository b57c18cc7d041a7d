/* Copies between the caller's buffers and the workspace.

   The generated code defines P (the area of parameters) and `move`, which copies all parameters between the caller's
   order and the loops' order. */

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

static __attribute__((unused)) void give_inputs(const double *restrict w, double *restrict x)
{
    for (long long i = 0; i < INPUTS; i++)
        x[i] = w[i];
}

static void take_parameters(double *restrict w, const double *restrict p)
{
    move(w, (double *)p, 0);
}
