/* A Value graph as straight-line C.
   x: 1 inputs   p: 1 parameters   w: workspace of 9   y: 0 outputs
   q: gradients of the parameters   No two of these buffers overlap. */

double pow(double, double);

__attribute__((noinline, visibility("hidden"))) void forward_0(const double *restrict x, const double *restrict p, double *restrict w)
{
    const double v2 = x[0] + p[0];
    const double v5 = v2 + (v2 + 1.0);
    const double v11 = v5 + (v5 + 1.0 + x[0] * -1.0);
    const double v15 = x[0] * p[0] + pow(p[0], 3.0);
    const double v18 = p[0] + x[0];
    w[0] = v18 < 0.0 ? 0.0 : v18;
    w[1] = v15;
    w[3] = v11;
}

__attribute__((noinline, visibility("hidden"))) void forward_1(const double *restrict x, const double *restrict p, double *restrict w)
{
    const double v24 = w[1] + (w[1] * 2.0 + w[0]);
    const double v29 = p[0] + x[0] * -1.0;
    w[2] = v29 < 0.0 ? 0.0 : v29;
    const double v37 = (v24 + (v24 * 3.0 + w[2])) * -1.0;
    w[4] = w[3] + v37;
}

__attribute__((noinline, visibility("hidden"))) void forward_2(double *restrict w)
{
    w[5] = pow(w[4], 2.0);
    w[6] = w[5] * 0.5 + pow(w[5], -1.0) * 10.0;
}

__attribute__((noinline, visibility("hidden"))) void backward_0(double *restrict w, double *restrict q)
{
    const double v54 = -1.0 * pow(w[5], -2.0) * (10.0 * 1.0);
    const double v61 = 2.0 * pow(w[4], 1.0) * (v54 + 0.5 * 1.0);
    const double v62 = -1.0 * v61;
    q[0] += (w[2] > 0.0) * v62;
    w[7] = v62;
    w[8] = v61;
}

__attribute__((noinline, visibility("hidden"))) void backward_1(const double *restrict x, const double *restrict p, double *restrict w, double *restrict q)
{
    const double v68 = w[7] + 3.0 * w[7];
    q[0] += (w[0] > 0.0) * v68;
    const double v74 = v68 + 2.0 * v68;
    q[0] += 3.0 * pow(p[0], 2.0) * v74;
    q[0] += x[0] * v74;
}

__attribute__((noinline, visibility("hidden"))) void backward_2(double *restrict w, double *restrict q)
{
    const double v83 = w[8] + w[8];
    q[0] += v83 + v83;
}


double forward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict y)
{
    (void)y;
    forward_0(x, p, w);
    forward_1(x, p, w);
    forward_2(w);
    return w[6];
}

void backward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict q)
{
    backward_0(w, q);
    backward_1(x, p, w, q);
    backward_2(w, q);
}

enum { INPUTS = 1, PARAMETERS = 1 };
enum kind { DOUBLES, BYTES, CLASSES };

/* Some inputs of every row. BYTES become byte / divisor, a class label WIDTH inputs that are 0.0 but for one. */
struct column {
    const void *data;
    long long width;
    double divisor;
    long long kind;
};

void set_input(double *restrict x, const struct column *columns, long long count, long long row)
{
    for (const struct column *c = columns; c < columns + count; x += c->width, c++) {
        if (c->kind == DOUBLES) {
            const double *cells = (const double *)c->data + row * c->width;
            for (long long i = 0; i < c->width; i++)
                x[i] = cells[i];
        } else if (c->kind == BYTES) {
            const unsigned char *cells = (const unsigned char *)c->data + row * c->width;
            for (long long i = 0; i < c->width; i++)
                x[i] = cells[i] / c->divisor;
        } else {
            const unsigned char *label = (const unsigned char *)c->data + row;
            for (long long i = 0; i < c->width; i++)
                x[i] = *label == i;
        }
    }
}

void zero_grad(double *restrict q)
{
    for (long long i = 0; i < PARAMETERS; i++)
        q[i] = 0.0;
}

void update(double *restrict p, double *restrict q, double rate, double batch)
{
    if (batch == 1.0) /* a division by 1.0 changes nothing, and takes most of the time */
        for (long long i = 0; i < PARAMETERS; i++)
            p[i] -= rate * q[i];
    else
        for (long long i = 0; i < PARAMETERS; i++)
            p[i] -= rate * q[i] / batch;
    zero_grad(q);
}

/* Gives how many losses were finite; the first that is not ends the training, before its backward pass. */
long long train(double *restrict x, double *restrict p, double *restrict w, double *restrict y,
                double *restrict q, const struct column *columns, long long count, long long rows,
                long long first_row, long long steps, long long batch, long long taken,
                const double *restrict rates, double *restrict losses)
{
    for (long long step = 0; step < steps; step++) {
        set_input(x, columns, count, (first_row + step) % rows);
        losses[step] = forward(x, p, w, y);
        if (losses[step] - losses[step] != 0.0)
            return step;
        backward(x, p, w, q);
        if (++taken % batch == 0)
            update(p, q, *rates++, (double)batch);
    }
    return steps;
}
