/* A model's state, and what can be done with it: the part that both forms of a standalone build share.

   A kernel and these macros come before this file:
     INPUTS, OUTPUTS, WORKSPACE   sizes in doubles
     PARAMETERS                   number of parameters that the kernel reads
     FROZEN                       1 for a kernel with nothing but a forward pass
     HAS_LOAD                     if the kernel keeps a copy of the parameters in its workspace, which `load` makes

   START, the starting parameters, comes after this file. */

static const double START[PARAMETERS + 1] __attribute__((unused));

/* One double more each, because C has no empty arrays. */
struct model {
    double x[INPUTS + 1], y[OUTPUTS + 1], w[WORKSPACE + 1];
#if !FROZEN
    double p[PARAMETERS + 1], q[PARAMETERS + 1];
    long long taken; /* steps since the last update */
    int ran_forward;
#endif
    int loaded;
};

static double forward_model(struct model *m)
{
#if FROZEN
    const double *p = START;
#else
    const double *p = m->p;
    m->ran_forward = 1;
#endif
#ifdef HAS_LOAD
    if (!m->loaded)
        load(p, m->w);
    m->loaded = 1;
#endif
    return forward(m->x, p, m->w, m->y);
}

#if !FROZEN
static void changed_model(struct model *m)
{
    m->loaded = m->ran_forward = 0;
}

static void set_parameters_model(struct model *m, const double *p)
{
    for (long long i = 0; i < PARAMETERS; i++)
        m->p[i] = p[i];
    changed_model(m);
}

/* A partial batch has gradients in q, so it ends with them. */
static void zero_grad_model(struct model *m)
{
    zero_grad(m->q);
    m->taken = 0;
}

static void update_model(struct model *m, double rate, double batch)
{
    update(m->p, m->q, rate, batch);
    m->taken = 0;
    changed_model(m);
}

static long long train_model(struct model *m, const struct column *columns, long long count, long long rows,
                             long long first_row, long long steps, long long batch, const double *rates, double *losses)
{
    const struct buffers buffers = {m->x, m->p, m->w, m->y, m->q};
    const struct stretch stretch = {columns, count, rows, first_row, steps, batch, m->taken % batch, rates, losses, 1, 0};
    long long done = train(&buffers, &stretch);
    m->taken = (m->taken + done) % batch;
    changed_model(m);
    return done;
}
#endif

/* Return a model to its start. It may be new: then it is all zeros. */
static void restart_model(struct model *m)
{
#if FROZEN
    m->loaded = 0;
#else
    set_parameters_model(m, START);
    zero_grad_model(m);
#endif
}
