/* A kernel's interface to the published functions, which do not take buffers.

   It copies the caller's parameters and gradients to data[] and grad[] and back. Training copies once before its loop
   and once after it, so the loop is the same as in the post: input, forward, backward, update. */

static void put(double *array, const int *rows, long long count, const double *values)
{
    for (long long i = 0; i < count; i++)
        array[rows[i]] = values[i];
}

static void get(const double *array, const int *rows, long long count, double *values)
{
    for (long long i = 0; i < count; i++)
        values[i] = array[rows[i]];
}

double forward(const double *x, const double *p, double *w, double *y)
{
    put(data, parameter_rows, PARAMETERS, p);
    published_set_input(x);
    published_forward();
    get(data, output_rows, OUTPUTS, y);
    return data[LOSS];
}

void backward(const double *x, const double *p, double *w, double *q)
{
    put(grad, parameter_rows, PARAMETERS, q);
    published_backward();
    get(grad, parameter_rows, PARAMETERS, q);
}

static void enter(struct training *t)
{
    put(data, parameter_rows, PARAMETERS, t->p);
    put(grad, parameter_rows, PARAMETERS, t->q);
}

static int evaluate(struct training *t)
{
    take_row(t, t->x, 0);
    published_set_input(t->x);
    published_forward();
    get(data, output_rows, OUTPUTS, t->y);
    return record(t, data[LOSS]);
}

static int turn(struct training *t)
{
    if (!evaluate(t))
        return 0;
    published_backward();
    if (batch_ends(t, 1)) {
        published_update(*t->rates++, (double)t->stretch->batch);
        for (long long i = 0; i < PARAMETERS; i++)
            grad[parameter_rows[i]] = 0.0;
    }
    return 1;
}

static void leave(struct training *t)
{
    get(data, parameter_rows, PARAMETERS, t->p);
    get(grad, parameter_rows, PARAMETERS, t->q);
}
