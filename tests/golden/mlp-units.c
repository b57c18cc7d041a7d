/* A Value graph as straight-line C.
   x: 3 inputs   p: 9 parameters   w: workspace of 5   y: 1 outputs
   q: gradients of the parameters   No two of these buffers overlap. */

double pow(double, double);

__attribute__((noinline, visibility("hidden"))) void forward_0(const double *restrict x, const double *restrict p, double *restrict w)
{
    const double v15 = p[2] + p[0] * x[0] + p[1] * x[1];
    w[0] = v15 < 0.0 ? 0.0 : v15;
    const double v25 = p[5] + p[3] * x[0] + p[4] * x[1];
    w[1] = v25 < 0.0 ? 0.0 : v25;
}

__attribute__((noinline, visibility("hidden"))) void forward_1(const double *restrict x, const double *restrict p, double *restrict w, double *restrict y)
{
    const double v31 = p[8] + p[6] * w[0] + p[7] * w[1];
    y[0] = v31;
    w[2] = v31 + x[2] * -1.0;
    w[3] = pow(w[2], 2.0) + 0.0;
}

__attribute__((noinline, visibility("hidden"))) void backward_0(const double *restrict x, const double *restrict p, double *restrict w, double *restrict q);
__attribute__((noinline, visibility("hidden"))) void backward_1(const double *restrict x, const double *restrict p, double *restrict w, double *restrict q);

double forward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict y)
{
    forward_0(x, p, w);
    forward_1(x, p, w, y);
    return w[3];
}

void backward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict q)
{
    backward_0(x, p, w, q);
    backward_1(x, p, w, q);
}

enum { INPUTS = 3, PARAMETERS = 9 };
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

/* --- the next unit --- */

/* A Value graph as straight-line C.
   x: 3 inputs   p: 9 parameters   w: workspace of 5   y: 1 outputs
   q: gradients of the parameters   No two of these buffers overlap. */

double pow(double, double);

__attribute__((noinline, visibility("hidden"))) void backward_0(const double *restrict x, const double *restrict p, double *restrict w, double *restrict q)
{
    const double v44 = 2.0 * pow(w[2], 1.0) * 1.0;
    q[7] += w[1] * v44;
    const double v50 = (w[1] > 0.0) * (p[7] * v44);
    q[4] += x[1] * v50;
    q[5] += v50;
    q[3] += x[0] * v50;
    w[4] = v44;
}

__attribute__((noinline, visibility("hidden"))) void backward_1(const double *restrict x, const double *restrict p, double *restrict w, double *restrict q)
{
    q[8] += w[4];
    q[6] += w[0] * w[4];
    const double v62 = (w[0] > 0.0) * (p[6] * w[4]);
    q[1] += x[1] * v62;
    q[2] += v62;
    q[0] += x[0] * v62;
}
