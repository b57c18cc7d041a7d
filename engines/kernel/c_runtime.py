"""C runtime around a graph's own functions: rows become inputs, gradients become updates, and steps become training.

Templates over {export}, what stands before each function that is called from outside.
"""

COLUMNS = """\
enum {{ INPUTS = {inputs}, PARAMETERS = {parameters} }};
enum kind {{ DOUBLES, BYTES, CLASSES }};

/* Some inputs of every row. BYTES become byte / divisor, a class label WIDTH inputs that are 0.0 but for one. */
struct column {{
    const void *data;
    long long width;
    double divisor;
    long long kind;
}};

{export}void set_input(double *restrict x, const struct column *columns, long long count, long long row)
{{
    for (const struct column *c = columns; c < columns + count; x += c->width, c++) {{
        if (c->kind == DOUBLES) {{
            const double *cells = (const double *)c->data + row * c->width;
            for (long long i = 0; i < c->width; i++)
                x[i] = cells[i];
        }} else if (c->kind == BYTES) {{
            const unsigned char *cells = (const unsigned char *)c->data + row * c->width;
            for (long long i = 0; i < c->width; i++)
                x[i] = cells[i] / c->divisor;
        }} else {{
            const unsigned char *label = (const unsigned char *)c->data + row;
            for (long long i = 0; i < c->width; i++)
                x[i] = *label == i;
        }}
    }}
}}
"""
"""Over {inputs} and {parameters}, too: their counts, and how rows are read."""

UPDATE = """\
{export}void zero_grad(double *restrict q)
{{
    for (long long i = 0; i < PARAMETERS; i++)
        q[i] = 0.0;
}}

{export}void update(double *restrict p, double *restrict q, double rate, double batch)
{{
    if (batch == 1.0) /* a division by 1.0 changes nothing, and takes most of the time */
        for (long long i = 0; i < PARAMETERS; i++)
            p[i] -= rate * q[i];
    else
        for (long long i = 0; i < PARAMETERS; i++)
            p[i] -= rate * q[i] / batch;
    zero_grad(q);
}}
"""

TRAIN = """\
/* Gives how many losses were finite; the first that is not ends the training, before its backward pass. */
{export}long long train(double *restrict x, double *restrict p, double *restrict w, double *restrict y,
                double *restrict q, const struct column *columns, long long count, long long rows,
                long long first_row, long long steps, long long batch, long long taken,
                const double *restrict rates, double *restrict losses)
{{
    for (long long step = 0; step < steps; step++) {{
        set_input(x, columns, count, (first_row + step) % rows);
        losses[step] = forward(x, p, w, y);
        if (losses[step] - losses[step] != 0.0)
            return step;
        backward(x, p, w, q);
        if (++taken % batch == 0)
            update(p, q, *rates++, (double)batch);
    }}
    return steps;
}}
"""
"""Over straight-line `forward` and `backward`."""
