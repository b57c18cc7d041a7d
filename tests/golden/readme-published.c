/* A Value graph as first published: row n of the tape is data[n], and its gradient is grad[n]. */

double pow(double, double);

double data[39];
double grad[39];

void published_set_input(const double *x)
{
    data[0] = x[0];
}

void published_forward(void)
{
    data[2] = data[0] + data[1];
    data[3] = 1.0;
    data[4] = data[2] + data[3];
    data[5] = data[2] + data[4];
    data[6] = 1.0;
    data[7] = data[5] + data[6];
    data[8] = -1.0;
    data[9] = data[0] * data[8];
    data[10] = data[7] + data[9];
    data[11] = data[5] + data[10];
    data[12] = data[0] * data[1];
    data[13] = pow(data[1], 3.0);
    data[14] = data[12] + data[13];
    data[15] = 2.0;
    data[16] = data[14] * data[15];
    data[17] = data[1] + data[0];
    data[18] = data[17] < 0.0 ? 0.0 : data[17];
    data[19] = data[16] + data[18];
    data[20] = data[14] + data[19];
    data[21] = 3.0;
    data[22] = data[20] * data[21];
    data[23] = -1.0;
    data[24] = data[0] * data[23];
    data[25] = data[1] + data[24];
    data[26] = data[25] < 0.0 ? 0.0 : data[25];
    data[27] = data[22] + data[26];
    data[28] = data[20] + data[27];
    data[29] = -1.0;
    data[30] = data[28] * data[29];
    data[31] = data[11] + data[30];
    data[32] = pow(data[31], 2.0);
    data[33] = 0.5;
    data[34] = data[32] * data[33];
    data[35] = pow(data[32], -1.0);
    data[36] = 10.0;
    data[37] = data[35] * data[36];
    data[38] = data[34] + data[37];
}

void published_backward(void)
{
    grad[2] = 0.0;
    grad[4] = 0.0;
    grad[5] = 0.0;
    grad[7] = 0.0;
    grad[9] = 0.0;
    grad[10] = 0.0;
    grad[11] = 0.0;
    grad[12] = 0.0;
    grad[13] = 0.0;
    grad[14] = 0.0;
    grad[16] = 0.0;
    grad[17] = 0.0;
    grad[18] = 0.0;
    grad[19] = 0.0;
    grad[20] = 0.0;
    grad[22] = 0.0;
    grad[24] = 0.0;
    grad[25] = 0.0;
    grad[26] = 0.0;
    grad[27] = 0.0;
    grad[28] = 0.0;
    grad[30] = 0.0;
    grad[31] = 0.0;
    grad[32] = 0.0;
    grad[34] = 0.0;
    grad[35] = 0.0;
    grad[37] = 0.0;
    grad[38] = 1.0;
    grad[34] += grad[38];
    grad[37] += grad[38];
    grad[35] += data[36] * grad[37];
    grad[32] += -1.0 * pow(data[32], -1.0 - 1.0) * grad[35];
    grad[32] += data[33] * grad[34];
    grad[31] += 2.0 * pow(data[31], 2.0 - 1.0) * grad[32];
    grad[11] += grad[31];
    grad[30] += grad[31];
    grad[28] += data[29] * grad[30];
    grad[20] += grad[28];
    grad[27] += grad[28];
    grad[22] += grad[27];
    grad[26] += grad[27];
    grad[25] += (data[26] > 0.0) * grad[26];
    grad[1] += grad[25];
    grad[24] += grad[25];
    grad[20] += data[21] * grad[22];
    grad[14] += grad[20];
    grad[19] += grad[20];
    grad[16] += grad[19];
    grad[18] += grad[19];
    grad[17] += (data[18] > 0.0) * grad[18];
    grad[1] += grad[17];
    grad[14] += data[15] * grad[16];
    grad[12] += grad[14];
    grad[13] += grad[14];
    grad[1] += 3.0 * pow(data[1], 3.0 - 1.0) * grad[13];
    grad[1] += data[0] * grad[12];
    grad[5] += grad[11];
    grad[10] += grad[11];
    grad[7] += grad[10];
    grad[9] += grad[10];
    grad[5] += grad[7];
    grad[2] += grad[5];
    grad[4] += grad[5];
    grad[2] += grad[4];
    grad[1] += grad[2];
}

void published_update(double rate, double batch)
{
    data[1] -= rate * grad[1] / batch;
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

enum { OUTPUTS = 0, LOSS = 38 };

/* Where parameters and outputs are among data[] and grad[]. */
static const int parameter_rows[] = {
    1,
};
static const int output_rows[] = {
    0,
};

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

static void clear_gradients(void)
{
    for (long long i = 0; i < PARAMETERS; i++)
        grad[parameter_rows[i]] = 0.0;
}

double forward(const double *x, const double *p, double *w, double *y)
{
    (void)w;
    put(data, parameter_rows, PARAMETERS, p);
    published_set_input(x);
    published_forward();
    get(data, output_rows, OUTPUTS, y);
    return data[LOSS];
}

void backward(const double *x, const double *p, double *w, double *q)
{
    (void)x, (void)p, (void)w;
    put(grad, parameter_rows, PARAMETERS, q);
    published_backward();
    get(grad, parameter_rows, PARAMETERS, q);
}

void zero_grad(double *q)
{
    for (long long i = 0; i < PARAMETERS; i++)
        q[i] = 0.0;
}

void update(double *p, double *q, double rate, double batch)
{
    put(data, parameter_rows, PARAMETERS, p);
    put(grad, parameter_rows, PARAMETERS, q);
    published_update(rate, batch);
    get(data, parameter_rows, PARAMETERS, p);
    zero_grad(q);
}

/* Gives how many losses were finite; the first that is not ends the training, before its backward pass. */
long long train(double *x, double *p, double *w, double *y, double *q, const struct column *columns,
                long long count, long long rows, long long first_row, long long steps, long long batch,
                long long taken, const double *rates, double *losses)
{
    long long step = 0;
    (void)w;
    put(data, parameter_rows, PARAMETERS, p);
    put(grad, parameter_rows, PARAMETERS, q);
    for (; step < steps; step++) {
        set_input(x, columns, count, (first_row + step) % rows);
        published_set_input(x);
        published_forward();
        get(data, output_rows, OUTPUTS, y);
        losses[step] = data[LOSS];
        if (losses[step] - losses[step] != 0.0)
            break;
        published_backward();
        if (++taken % batch == 0) {
            published_update(*rates++, (double)batch);
            clear_gradients();
        }
    }
    get(data, parameter_rows, PARAMETERS, p);
    get(grad, parameter_rows, PARAMETERS, q);
    return step;
}
