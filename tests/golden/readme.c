/* A Value graph as straight-line C: 1 inputs, 1 parameters, 0 outputs, a workspace of 9 doubles. */

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

#define INPUTS 1
#define PARAMETERS 1

double pow(double, double);

__attribute__((noinline, visibility("hidden"))) void forward_0(const double *restrict x, const double *restrict p,
                                                               double *restrict w)
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

__attribute__((noinline, visibility("hidden"))) void forward_1(const double *restrict x, const double *restrict p,
                                                               double *restrict w)
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

__attribute__((noinline, visibility("hidden"))) void backward_1(const double *restrict x, const double *restrict p,
                                                                double *restrict w, double *restrict q)
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

void backward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict q)
{
    backward_0(w, q);
    backward_1(x, p, w, q);
    backward_2(w, q);
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

/* Training for kernels that compute one row at a time in the caller's buffers, without copying. */

static void enter(struct training *t)
{
    (void)t;
}

#ifndef FORWARD_ONLY
static int turn(struct training *t)
{
    take_row(t, t->x, 0);
    if (!record(t, forward(t->x, t->p, t->w, t->y)))
        return 0;
    backward(t->x, t->p, t->w, t->q);
    if (batch_ends(t, 1))
        update(t->p, t->q, *t->rates++, (double)t->stretch->batch);
    return 1;
}
#endif

static int evaluate(struct training *t)
{
    take_row(t, t->x, 0);
    return record(t, forward(t->x, t->p, t->w, t->y));
}

static void leave(struct training *t)
{
    (void)t;
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
