/* A model behind the functions of its header. `f(name)` is a name with the model's prefix.

   The header, a kernel and model.c come before this file, and the macros FEATURES, SHARED and `f`. */

static int take_columns(const struct f(column) *theirs, long long count, struct column *ours)
{
    long long width = 0;
    for (long long n = 0; n < count && n < MOST_COLUMNS; n++) {
        const struct f(column) *c = &theirs[n];
        if (c->width < 1 || c->width > INPUTS || c->kind < DOUBLES || c->kind > CLASSES || c->divisor == 0.0
            || c->divisor - c->divisor != 0.0)
            return 0;
        ours[n].data = c->data;
        ours[n].width = c->width;
        ours[n].divisor = c->divisor;
        ours[n].kind = c->kind;
        width += c->width;
    }
    return count >= 1 && count <= MOST_COLUMNS && width == INPUTS;
}

#if SHARED
static int in_use; /* the values of a second model would overwrite those of the first */
#endif

struct f(model) *f(new)(void)
{
#if SHARED
    if (in_use)
        return NULL;
#endif
    struct model *m = calloc(1, sizeof(struct model));
    if (!m)
        return NULL;
#if SHARED
    in_use = 1;
#endif
    restart_model(m);
    return (struct f(model) *)m;
}

void f(free)(struct f(model) *m)
{
#if SHARED
    if (m)
        in_use = 0;
#endif
    free(m);
}

int f(set_input)(struct f(model) *theirs, const struct f(column) *columns, long long count, long long row)
{
    struct model *m = (struct model *)theirs;
    struct column ours[MOST_COLUMNS];
    if (row < 0 || !take_columns(columns, count, ours))
        return -1;
#if !FROZEN
    m->ran_forward = 0;
#endif
    set_input(m->x, ours, count, row);
    return 0;
}

double *f(inputs)(struct f(model) *m)
{
    return ((struct model *)m)->x;
}

double f(forward)(struct f(model) *m)
{
    return forward_model((struct model *)m);
}

const double *f(outputs)(const struct f(model) *m)
{
    return ((const struct model *)m)->y;
}

const double *f(predict)(struct f(model) *theirs, const double *features)
{
    struct model *m = (struct model *)theirs;
    for (long long i = 0; i < INPUTS; i++)
        m->x[i] = i < FEATURES ? features[i] : 0.0;
    forward_model(m);
    return m->y;
}

#if !FROZEN
void f(restart)(struct f(model) *m)
{
    restart_model((struct model *)m);
}

int f(backward)(struct f(model) *theirs)
{
    struct model *m = (struct model *)theirs;
    if (!m->ran_forward)
        return -1;
    backward(m->x, m->p, m->w, m->q);
    return 0;
}

void f(zero_grad)(struct f(model) *m)
{
    zero_grad_model((struct model *)m);
}

void f(update)(struct f(model) *m, double rate, double batch)
{
    update_model((struct model *)m, rate, batch);
}

const double *f(parameters)(const struct f(model) *m)
{
    return ((const struct model *)m)->p;
}

void f(set_parameters)(struct f(model) *m, const double *parameters)
{
    set_parameters_model((struct model *)m, parameters);
}

double *f(gradients)(struct f(model) *m)
{
    return ((struct model *)m)->q;
}

long long f(train)(struct f(model) *theirs, const struct f(column) *columns, long long count, long long rows,
                   long long first_row, long long steps, long long batch, double rate, double *losses)
{
    struct model *m = (struct model *)theirs;
    struct column ours[MOST_COLUMNS];
    if (rows < 1 || first_row < 0 || first_row >= rows || steps < 0 || batch < 1 || steps > 1LL << 56
        || rate - rate != 0.0)
        return -1;
    if (!take_columns(columns, count, ours))
        return -1;
    const long long updates = (m->taken % batch + steps) / batch;
    double *rates = malloc(((size_t)updates + 1) * sizeof(double));
    if (!rates)
        return -1;
    for (long long i = 0; i < updates; i++)
        rates[i] = rate;
    const long long done = train_model(m, ours, count, rows, first_row, steps, batch, rates, losses);
    free(rates);
    return done;
}
#endif
