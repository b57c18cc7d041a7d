/* A Value graph as first published: row n of the tape is data[n], and its gradient is grad[n]. */

/* The interface between a compiled graph and its caller. cffi parses this file.

   x: inputs of one row   p: parameters   w: workspace   y: outputs   q: gradients of the parameters
   No two of these buffers overlap. */

/* Some inputs of every row, side by side with those of the other columns. */
struct column {
    const void *data;
    long long width; /* inputs per row */
    double divisor;  /* BYTES become byte / divisor */
    long long kind;  /* DOUBLES, BYTES, or CLASSES: a label becomes `width` inputs, all 0.0 except one */
};

struct buffers {
    double *x;
    double *p;
    double *w;
    double *y;
    double *q;
};

/* Steps over rows that wrap around, with an update after every `batch` steps. */
struct stretch {
    const struct column *columns;
    long long column_count;
    long long rows;
    long long first_row;
    long long steps;
    long long batch;
    long long taken;     /* steps since the last update */
    const double *rates; /* one for each update to come */
    double *losses;      /* output: one for each step */
    long long learns;    /* 0: run forward passes only, and change no parameter */
    long long y_step;    /* from a step's outputs to the next one's, if y holds those of every step and learns is 0; else 0 */
};

void set_input(double *x, const struct column *columns, long long count, long long row);
double forward(const double *x, const double *p, double *w, double *y);
void backward(const double *x, const double *p, double *w, double *q); /* adds to q; call forward first */
void zero_grad(double *q);
void update(double *p, double *q, double rate, double batch); /* p -= rate * q / batch; q = 0 */

/* Returns the number of finite losses. The first other loss ends the stretch, before its backward pass. */
long long train(const struct buffers *buffers, const struct stretch *stretch);

#define INPUTS 3
#define PARAMETERS 9
#define OUTPUTS 1
#define LOSS 31

double pow(double, double);
double data[32];
double grad[32];

void published_set_input(const double *x)
{
    data[4] = x[0];
    data[8] = x[1];
    data[25] = x[2];
}

void published_forward(void)
{
    data[5] = data[3] * data[4];
    data[6] = data[2] + data[5];
    data[9] = data[7] * data[8];
    data[10] = data[6] + data[9];
    data[11] = data[10] < 0.0 ? 0.0 : data[10];
    data[12] = data[1] * data[11];
    data[13] = data[0] + data[12];
    data[17] = data[16] * data[4];
    data[18] = data[15] + data[17];
    data[20] = data[19] * data[8];
    data[21] = data[18] + data[20];
    data[22] = data[21] < 0.0 ? 0.0 : data[21];
    data[23] = data[14] * data[22];
    data[24] = data[13] + data[23];
    data[26] = -1.0;
    data[27] = data[25] * data[26];
    data[28] = data[24] + data[27];
    data[29] = pow(data[28], 2.0);
    data[30] = 0.0;
    data[31] = data[29] + data[30];
}

void published_backward(void)
{
    grad[5] = 0.0;
    grad[6] = 0.0;
    grad[9] = 0.0;
    grad[10] = 0.0;
    grad[11] = 0.0;
    grad[12] = 0.0;
    grad[13] = 0.0;
    grad[17] = 0.0;
    grad[18] = 0.0;
    grad[20] = 0.0;
    grad[21] = 0.0;
    grad[22] = 0.0;
    grad[23] = 0.0;
    grad[24] = 0.0;
    grad[27] = 0.0;
    grad[28] = 0.0;
    grad[29] = 0.0;
    grad[31] = 1.0;
    grad[29] += grad[31];
    grad[28] += 2.0 * pow(data[28], 2.0 - 1.0) * grad[29];
    grad[24] += grad[28];
    grad[27] += grad[28];
    grad[13] += grad[24];
    grad[23] += grad[24];
    grad[14] += data[22] * grad[23];
    grad[22] += data[14] * grad[23];
    grad[21] += (data[22] > 0.0) * grad[22];
    grad[18] += grad[21];
    grad[20] += grad[21];
    grad[19] += data[8] * grad[20];
    grad[15] += grad[18];
    grad[17] += grad[18];
    grad[16] += data[4] * grad[17];
    grad[0] += grad[13];
    grad[12] += grad[13];
    grad[1] += data[11] * grad[12];
    grad[11] += data[1] * grad[12];
    grad[10] += (data[11] > 0.0) * grad[11];
    grad[6] += grad[10];
    grad[9] += grad[10];
    grad[7] += data[8] * grad[9];
    grad[2] += grad[6];
    grad[5] += grad[6];
    grad[3] += data[4] * grad[5];
}

void published_update(double rate, double batch)
{
    data[3] -= rate * grad[3] / batch;
    data[7] -= rate * grad[7] / batch;
    data[2] -= rate * grad[2] / batch;
    data[16] -= rate * grad[16] / batch;
    data[19] -= rate * grad[19] / batch;
    data[15] -= rate * grad[15] / batch;
    data[1] -= rate * grad[1] / batch;
    data[14] -= rate * grad[14] / batch;
    data[0] -= rate * grad[0] / batch;
}

/* Indices of parameters and outputs in data[] and grad[]. */
static const int parameter_rows[] = {
    3, 7, 2, 16, 19, 15, 1, 14, 0,
};
static const int output_rows[] = {
    24,
};

/* Reading one column of a row. */

enum column_kind { DOUBLES, BYTES, CLASSES };

/* quotients: byte / divisor for each byte, if the column holds BYTES. */
static void read_column(double *restrict x, const struct column *c, long long row, const double *restrict quotients)
{
    const long long width = c->width;
    if (c->kind == DOUBLES) {
        const double *cells = (const double *)c->data + row * width;
        for (long long i = 0; i < width; i++)
            x[i] = cells[i];
    } else if (c->kind == BYTES) {
        const unsigned char *cells = (const unsigned char *)c->data + row * width;
        long long i = 0;
        for (; i + 4 <= width; i += 4, cells += 4) {
            x[i] = quotients[cells[0]];
            x[i + 1] = quotients[cells[1]];
            x[i + 2] = quotients[cells[2]];
            x[i + 3] = quotients[cells[3]];
        }
        for (; i < width; i++)
            x[i] = quotients[*cells++];
    } else {
        const unsigned char label = ((const unsigned char *)c->data)[row];
        for (long long i = 0; i < width; i++)
            x[i] = label == i;
    }
}

/* Reading one row, for callers that run the passes one by one. */

void set_input(double *restrict x, const struct column *columns, long long count, long long row)
{
    for (const struct column *c = columns; c < columns + count; x += c->width, c++) {
        if (c->kind == BYTES) {
            const unsigned char *cells = (const unsigned char *)c->data + row * c->width;
            for (long long i = 0; i < c->width; i++)
                x[i] = cells[i] / c->divisor;
        } else {
            read_column(x, c, row, 0);
        }
    }
}

/* State of the training loop, which each turn reads and changes.

   A kernel that keeps more state between turns defines HAS_STATE and `struct state` before this file. */

/* A lookup table for byte / divisor, because a row of divisions takes longer than a layer's products. */
struct quotients {
    double of[256];
};

struct training {
    const struct stretch *stretch;
    const struct quotients *quotients; /* one for each column, used if it holds BYTES */
    double *x, *p, *w, *y, *q;
    long long step;      /* number of recorded losses, all finite */
    long long row;       /* the next row */
    long long taken;     /* rows since the last update */
    const double *rates; /* of the updates to come */
#ifdef HAS_STATE
    struct state state;
#endif
};

/* Read the row `ahead` rows after the next one. */
static void take_row(const struct training *t, double *restrict x, long long ahead)
{
    const struct stretch *s = t->stretch;
    long long row = ahead ? (t->row + ahead) % s->rows : t->row;
    for (long long n = 0; n < s->column_count; x += s->columns[n].width, n++)
        read_column(x, &s->columns[n], row, t->quotients[n].of);
}

/* Record the loss of the current row. If it is finite, advance to the next row and return 1. */
static int record(struct training *t, double loss)
{
    t->stretch->losses[t->step] = loss;
    if (loss - loss != 0.0)
        return 0;
    t->step++;
    if (++t->row == t->stretch->rows)
        t->row = 0;
    return 1;
}

/* Count rows whose gradients were added. Returns whether they complete the batch. */
static __attribute__((unused)) int batch_ends(struct training *t, long long rows)
{
    t->taken += rows;
    if (t->taken < t->stretch->batch)
        return 0;
    t->taken = 0;
    return 1;
}

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

static void enter(struct training *t)
{
    put(data, parameter_rows, PARAMETERS, t->p);
    put(grad, parameter_rows, PARAMETERS, t->q);
}

static int turn(struct training *t)
{
    take_row(t, t->x, 0);
    published_set_input(t->x);
    published_forward();
    get(data, output_rows, OUTPUTS, t->y);
    if (!record(t, data[LOSS]))
        return 0;
    published_backward();
    if (batch_ends(t, 1)) {
        published_update(*t->rates++, (double)t->stretch->batch);
        for (long long i = 0; i < PARAMETERS; i++)
            grad[parameter_rows[i]] = 0.0;
    }
    return 1;
}

static int evaluate(struct training *t)
{
    take_row(t, t->x, 0);
    published_set_input(t->x);
    published_forward();
    get(data, output_rows, OUTPUTS, t->y);
    return record(t, data[LOSS]);
}

static void leave(struct training *t)
{
    get(data, parameter_rows, PARAMETERS, t->p);
    get(grad, parameter_rows, PARAMETERS, t->q);
}

/* Last part of every C kernel: updating, and the training loop.

   The loop runs turn(t), or evaluate(t) for a stretch that does not learn, until all steps are done or a loss is not
   finite. A turn may train on several rows at once. Example: for a batch of 5, a kernel that takes 4 rows together needs
   two turns, of 4 rows and of 1.

   A kernel defines before this file:
     PARAMETERS     the number of parameters
     enter(t)       copy parameters and gradients from the caller's buffers
     turn(t)        train on the next row, or on several; return 0 if a loss is not finite, which ends the training
     evaluate(t)    run the forward pass over the next row, and copy its outputs; return 0 if its loss is not finite
     leave(t)       copy parameters, gradients, the last row and its outputs to the caller's buffers
     FORWARD_ONLY   if it has no backward pass and no turn
     WEIGHTS        if it has its own parameters: their array, which `enter` copies from */

#ifdef FORWARD_ONLY
#define NEXT evaluate(&t)
#else
#define NEXT (s->learns ? turn(&t) : evaluate(&t))
#endif
#ifndef WEIGHTS
#define WEIGHTS b->p
#endif

void zero_grad(double *restrict q)
{
    for (long long i = 0; i < PARAMETERS; i++)
        q[i] = 0.0;
}

#ifndef FORWARD_ONLY
void update(double *restrict p, double *restrict q, double rate, double batch)
{
    if (batch == 1.0) /* dividing by 1.0 changes nothing, but takes most of the time */
        for (long long i = 0; i < PARAMETERS; i++)
            p[i] -= rate * q[i];
    else
        for (long long i = 0; i < PARAMETERS; i++)
            p[i] -= rate * q[i] / batch;
    zero_grad(q);
}
#endif

long long train(const struct buffers *b, const struct stretch *s)
{
    if (s->steps == 0)
        return 0;
    struct quotients quotients[s->column_count];
    for (long long n = 0; n < s->column_count; n++)
        for (long long byte = 0; byte < 256 && s->columns[n].kind == BYTES; byte++)
            quotients[n].of[byte] = (double)byte / s->columns[n].divisor;
    struct training t = {
        .stretch = s,
        .quotients = quotients,
        .x = b->x,
        .p = (double *)WEIGHTS,
        .w = b->w,
        .y = b->y,
        .q = b->q,
        .row = s->first_row,
        .taken = s->taken,
        .rates = s->rates,
    };
    enter(&t);
    do
        t.y = b->y + t.step * s->y_step;
    while (NEXT && t.step < s->steps);
    leave(&t);
    return t.step;
}
