/* The passes of each graph of a kernel of several graphs.

   The generated code before this file defines run_forward and run_backward over `struct areas`, the rows of the table,
   V, G, U and TRANSPOSED, which are the areas' places in the workspace, LOSS, and the gaps of the buffer of parameters. */

static struct areas areas_of(long long graph, const double *x, const double *p, double *w, double *y, double *q)
{
    /* A workspace starts at a multiple of 64 bytes, because a vector that crosses a cache line takes twice the time. */
    double *const start = (double *)(((unsigned long long)w + 63) & ~63ULL);
    return (struct areas){(double *)x, (double *)p, q, y, start + V, start + G, start + U,
                          start + TRANSPOSED, rows[graph], constants[graph]};
}

static double forward_of(long long graph, const double *x, const double *p, double *w, double *y)
{
    const struct areas a = areas_of(graph, x, p, w, y, 0);
    run_forward(&a);
    return LOSS;
}

static void backward_of(long long graph, const double *x, const double *p, double *w, double *q)
{
    const struct areas a = areas_of(graph, x, p, w, 0, q);
    run_backward(&a);
    /* Whole vectors also write to the gaps. */
    for (long long i = 0; i < GAPS; i++)
        q[gaps[i]] = 0.0;
}

#define PASSES(graph)                                                                                                  \
    static double forward_##graph(const double *x, const double *p, double *w, double *y)                              \
    {                                                                                                                  \
        return forward_of(graph, x, p, w, y);                                                                          \
    }                                                                                                                  \
    static void backward_##graph(const double *x, const double *p, double *w, double *q)                               \
    {                                                                                                                  \
        backward_of(graph, x, p, w, q);                                                                                \
    }
