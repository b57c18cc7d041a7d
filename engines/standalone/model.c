/* A model's state, and what can be done with it: the part that both forms of a standalone build share.

   A kernel and these macros come before this file:
     INPUTS, OUTPUTS, WORKSPACE   sizes in doubles
     PARAMETERS                   number of parameters that the kernel reads
     FROZEN                       1 for a kernel with nothing but a forward pass
     HAS_LOAD                     if the frozen kernel must take the parameters once

   START, the starting parameters, comes after this file. */

/* One double more each, because C has no empty arrays. */
static const double START[PARAMETERS + 1] __attribute__((unused));

struct model {
    double x[INPUTS + 1], y[OUTPUTS + 1], w[WORKSPACE + 1];
#if !FROZEN
    double p[PARAMETERS + 1], q[PARAMETERS + 1];
    long long taken; /* steps since the last update */
    int ran_forward;
#endif
};

#if FROZEN
static void model_restart(struct model *m)
{
#ifdef HAS_LOAD
    load(START, m->w);
#endif
    (void)m;
}

static double model_forward(struct model *m)
{
    return forward(m->x, 0, m->w, m->y);
}
#else
static void model_restart(struct model *m)
{
    for (long long i = 0; i < PARAMETERS; i++)
        m->p[i] = START[i];
    zero_grad(m->q);
    m->taken = m->ran_forward = 0;
}

static double model_forward(struct model *m)
{
    m->ran_forward = 1;
    return forward(m->x, m->p, m->w, m->y);
}

static void model_update(struct model *m, double rate, double batch)
{
    update(m->p, m->q, rate, batch);
    m->taken = m->ran_forward = 0;
}

static long long model_train(struct model *m, const struct column *columns, long long count, long long rows,
                             long long first_row, long long steps, long long batch, const double *rates, double *losses)
{
    const struct buffers buffers = {m->x, m->p, m->w, m->y, m->q};
    const struct stretch stretch = {columns, count, rows, first_row, steps, batch, m->taken % batch, rates, losses};
    long long done = train(&buffers, &stretch);
    m->taken = (m->taken + done) % batch;
    m->ran_forward = 0;
    return done;
}
#endif
