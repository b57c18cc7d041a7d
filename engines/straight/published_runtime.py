"""C runtime around the published functions, which know no buffers: the interface of every other kernel.

It copies the caller's parameters and gradients into data[] and grad[] and out of them again. A training run copies once
before its loop and once after it, so that the loop itself is the post's: input, forward, backward, update.
"""

RUNTIME = """\
enum {{ OUTPUTS = {outputs}, LOSS = {loss} }};

/* Where parameters and outputs are among data[] and grad[]. */
static const int parameter_rows[] = {parameter_rows};
static const int output_rows[] = {output_rows};

static void put(double *array, const int *rows, long long count, const double *values)
{{
    for (long long i = 0; i < count; i++)
        array[rows[i]] = values[i];
}}

static void get(const double *array, const int *rows, long long count, double *values)
{{
    for (long long i = 0; i < count; i++)
        values[i] = array[rows[i]];
}}

static void clear_gradients(void)
{{
    for (long long i = 0; i < PARAMETERS; i++)
        grad[parameter_rows[i]] = 0.0;
}}

double forward(const double *x, const double *p, double *w, double *y)
{{
    (void)w;
    put(data, parameter_rows, PARAMETERS, p);
    published_set_input(x);
    published_forward();
    get(data, output_rows, OUTPUTS, y);
    return data[LOSS];
}}

void backward(const double *x, const double *p, double *w, double *q)
{{
    (void)x, (void)p, (void)w;
    put(grad, parameter_rows, PARAMETERS, q);
    published_backward();
    get(grad, parameter_rows, PARAMETERS, q);
}}

void zero_grad(double *q)
{{
    for (long long i = 0; i < PARAMETERS; i++)
        q[i] = 0.0;
}}

void update(double *p, double *q, double rate, double batch)
{{
    put(data, parameter_rows, PARAMETERS, p);
    put(grad, parameter_rows, PARAMETERS, q);
    published_update(rate, batch);
    get(data, parameter_rows, PARAMETERS, p);
    zero_grad(q);
}}

/* Gives how many losses were finite; the first that is not ends the training, before its backward pass. */
long long train(double *x, double *p, double *w, double *y, double *q, const struct column *columns,
                long long count, long long rows, long long first_row, long long steps, long long batch,
                long long taken, const double *rates, double *losses)
{{
    long long step = 0;
    (void)w;
    put(data, parameter_rows, PARAMETERS, p);
    put(grad, parameter_rows, PARAMETERS, q);
    for (; step < steps; step++) {{
        set_input(x, columns, count, (first_row + step) % rows);
        published_set_input(x);
        published_forward();
        get(data, output_rows, OUTPUTS, y);
        losses[step] = data[LOSS];
        if (losses[step] - losses[step] != 0.0)
            break;
        published_backward();
        if (++taken % batch == 0) {{
            published_update(*rates++, (double)batch);
            clear_gradients();
        }}
    }}
    get(data, parameter_rows, PARAMETERS, p);
    get(grad, parameter_rows, PARAMETERS, q);
    return step;
}}
"""
"""Over {outputs}, {loss}, {parameter_rows} and {output_rows}: where they are."""
