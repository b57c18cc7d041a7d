/* A Value graph as recovered loops.
   x: 6 inputs   p: 31 parameters   w: workspace of 304   y: 3 outputs
   q: gradients of the parameters   No two of these buffers overlap. The workspace holds copies, in the loops' order. */

double exp(double);
double log(double);
double pow(double, double);
void *memcpy(void *restrict to, const void *restrict from, __SIZE_TYPE__ bytes);
#define INLINE static inline __attribute__((always_inline, unused))
#define UNUSED __attribute__((unused))

typedef double v4 __attribute__((vector_size(8 * 4)));
typedef long long m4 __attribute__((vector_size(8 * 4)));
typedef v4 u4 __attribute__((aligned(8), may_alias)); /* as it lies in memory */
#define AT4(place) (*(u4 *)(place))
INLINE v4 all4(double a) { return (v4){a, a, a, a}; }
INLINE v4 where4(m4 is, v4 a, v4 b) { return (v4)((is & (m4)a) | (~is & (m4)b)); }
INLINE v4 truth4(m4 is) { return (v4)(is & (m4)all4(1.0)); }


__attribute__((noinline, visibility("hidden"))) void value_0(double *restrict w)
{
    {
        const v4 h0 = AT4(w + 16);
        v4 a0 = h0;
        for (long long t = 0; t < 3; t++) {
            double *r0 = w + 20 + 4*t;
            double *r1 = w + t;
            a0 += AT4(r0) * all4(r1[0]);
        }
        AT4(w + 56) = a0;
    }
}

__attribute__((noinline, visibility("hidden"))) void value_1(double *restrict w)
{
    AT4(w + 64) = where4(AT4(w + 56) < all4(0.0), all4(0.0), AT4(w + 56));
    {
        const v4 h0 = AT4(w + 32);
        v4 a0 = h0;
        for (long long t = 0; t < 4; t++) {
            double *r0 = w + 36 + 4*t;
            double *r1 = w + 64 + t;
            a0 += AT4(r0) * all4(r1[0]);
        }
        AT4(w + 72) = a0;
    }
    w[76] = (w[72] > w[73] ? w[72] : w[73]);
    w[77] = (w[76] > w[74] ? w[76] : w[74]) * -1.0;
    AT4(w + 80) = AT4(w + 72) + all4(w[77]);
    for (long long i = 0; i < 3; i++) {
        double *o = w + 88 + i;
        double *r0 = w + 80 + i;
        double a0 = exp(r0[0]);
        o[0] = a0;
    }
    w[92] = w[88] + w[89] + w[90];
    w[93] = pow(w[92], -1.0);
    AT4(w + 96) = AT4(w + 88) * all4(w[93]) + all4(0.0001);
    for (long long i = 0; i < 3; i++) {
        double *o = w + 104 + i;
        double *r0 = w + 96 + i;
        double a0 = log(r0[0]);
        o[0] = a0;
    }
    w[108] = w[3] * w[104] + w[4] * w[105] + w[5] * w[106];
    w[109] = w[108] * -1.0;
}

__attribute__((noinline, visibility("hidden"))) void sink_27(double *restrict w)
{
    {
        v4 a0 = AT4(w + 132);
        v4 a1 = AT4(w + 136);
        v4 a2 = AT4(w + 140);
        v4 a3 = AT4(w + 144);
        const v4 s0 = AT4(w + 168);
        a0 += all4(w[64]) * s0;
        a1 += all4(w[65]) * s0;
        a2 += all4(w[66]) * s0;
        a3 += all4(w[67]) * s0;
        AT4(w + 132) = a0;
        AT4(w + 136) = a1;
        AT4(w + 140) = a2;
        AT4(w + 144) = a3;
    }
    AT4(w + 128) = AT4(w + 128) + AT4(w + 168);
}

__attribute__((noinline, visibility("hidden"))) void sink_29(double *restrict w)
{
    {
        v4 a0 = AT4(w + 116);
        v4 a1 = AT4(w + 120);
        v4 a2 = AT4(w + 124);
        const v4 s0 = AT4(w + 152);
        a0 += all4(w[0]) * s0;
        a1 += all4(w[1]) * s0;
        a2 += all4(w[2]) * s0;
        AT4(w + 116) = a0;
        AT4(w + 120) = a1;
        AT4(w + 124) = a2;
    }
}

__attribute__((noinline, visibility("hidden"))) void sink_30(double *restrict w)
{
    AT4(w + 112) = AT4(w + 112) + AT4(w + 152);
}

__attribute__((noinline, visibility("hidden"))) void gradient_13(double *restrict w)
{
    w[204] = -1.0 * 1.0;
    w[208] = -1.0 * pow(w[92], -2.0);
    AT4(w + 216) = all4(1.0) / AT4(w + 96);
    AT4(w + 192) = AT4(w + 216) * (AT4(w + 3) * all4(w[204]));
    w[188] = w[208] * (w[90] * w[194]) + w[208] * (w[89] * w[193]) + w[208] * (w[88] * w[192]);
    AT4(w + 184) = all4(w[93]) * AT4(w + 192) + all4(w[188]);
    AT4(w + 176) = AT4(w + 88) * AT4(w + 184);
    w[220] = -1.0 * w[178] + -1.0 * w[177] + -1.0 * w[176];
    w[170] = w[178] + (w[76] > w[74] ? 0.0 : w[220]);
    w[172] = (w[76] > w[74] ? w[220] : 0.0);
    w[169] = w[177] + (w[72] > w[73] ? 0.0 : w[172]);
    w[168] = w[176] + (w[72] > w[73] ? w[172] : 0.0);
    {
        double a0 = 0.0;
        double a1 = 0.0;
        double a2 = 0.0;
        double a3 = 0.0;
        for (long long t = 0; t < 3; t++) {
            double *r0 = w + 38 - t;
            double *r1 = w + 170 - t;
            const double s0 = r1[0];
            a0 += r0[0] * s0;
            a1 += r0[4] * s0;
            a2 += r0[8] * s0;
            a3 += r0[12] * s0;
        }
        w[160] = a0;
        w[161] = a1;
        w[162] = a2;
        w[163] = a3;
    }
    AT4(w + 152) = truth4(AT4(w + 64) > all4(0.0)) * AT4(w + 160);
}

__attribute__((noinline, visibility("hidden"))) void descend_27(double *restrict w, double rate UNUSED)
{
    {
        const v4 s0 = AT4(w + 168);
        v4 a0 = all4(w[64]) * s0;
        v4 a1 = all4(w[65]) * s0;
        v4 a2 = all4(w[66]) * s0;
        v4 a3 = all4(w[67]) * s0;
        AT4(w + 36) -= all4(rate) * a0;
        AT4(w + 40) -= all4(rate) * a1;
        AT4(w + 44) -= all4(rate) * a2;
        AT4(w + 48) -= all4(rate) * a3;
    }
    AT4(w + 32) -= all4(rate) * AT4(w + 168);
    AT4(w + 16) -= all4(rate) * AT4(w + 152);
}

__attribute__((noinline, visibility("hidden"))) void descend_and_value(double *restrict w, double rate UNUSED)
{
    {
        const v4 h0 = AT4(w + 16);
        const v4 h1 = AT4(w + 152);
        const v4 h2 = all4(rate);
        v4 a0 = h0;
        for (long long t = 0; t < 3; t++) {
            double *r0 = w + 20 + 4*t;
            double *r1 = w + t;
            double *before = w + 232 + t;
            const v4 old = all4(before[0]);
            const v4 new0 = AT4(r0) - h2 * (old * h1);
            AT4(r0) = new0;
            before[0] = r1[0];
            a0 += new0 * all4(r1[0]);
        }
        AT4(w + 56) = a0;
    }
}

__attribute__((noinline, visibility("hidden"))) void settle(double *restrict w, double rate UNUSED)
{
    {
        const v4 s0 = AT4(w + 152);
        v4 a0 = all4(w[232]) * s0;
        v4 a1 = all4(w[233]) * s0;
        v4 a2 = all4(w[234]) * s0;
        AT4(w + 20) -= all4(rate) * a0;
        AT4(w + 24) -= all4(rate) * a1;
        AT4(w + 28) -= all4(rate) * a2;
    }
}

__attribute__((noinline, visibility("hidden"))) void values_of_rows(double *restrict w)
{
    {
        const v4 h0 = AT4(w + 16);
        v4 a0 = h0;
        v4 a1 = h0;
        for (long long t = 0; t < 3; t++) {
            double *r0 = w + 20 + 4*t;
            double *r1 = w + 248 + t;
            const v4 s0 = AT4(r0);
            a0 += s0 * all4(r1[0]);
            a1 += s0 * all4(r1[8]);
        }
        AT4(w + 264) = a0;
        AT4(w + 272) = a1;
    }
}

__attribute__((noinline, visibility("hidden"))) void sinks_of_rows(double *restrict w)
{
    {
        v4 a0 = AT4(w + 116);
        v4 a1 = AT4(w + 120);
        v4 a2 = AT4(w + 124);
        const v4 s0 = AT4(w + 280);
        a0 += all4(w[248]) * s0;
        a1 += all4(w[249]) * s0;
        a2 += all4(w[250]) * s0;
        {
            const v4 s0 = AT4(w + 288);
            a0 += all4(w[256]) * s0;
            a1 += all4(w[257]) * s0;
            a2 += all4(w[258]) * s0;
        }
        AT4(w + 116) = a0;
        AT4(w + 120) = a1;
        AT4(w + 124) = a2;
    }
}


static void values(double *restrict w)
{
    value_0(w);
    value_1(w);
}

static void gradients(double *restrict w)
{
    gradient_13(w);
}

static void sinks(double *restrict w)
{
    sink_27(w);
    sink_29(w);
    sink_30(w);
}

static void descend(double *restrict w, double rate UNUSED)
{
    descend_27(w, rate);
}

static void descend_and_values(double *restrict w, double rate UNUSED)
{
    descend_and_value(w, rate);
    value_1(w);
}

static void values_but_first(double *restrict w)
{
    value_1(w);
}

static void sinks_but_one(double *restrict w)
{
    sink_27(w);
    sink_30(w);
}

static void sink_one(double *restrict w)
{
    sink_29(w);
}

enum { INPUTS = 6, PARAMETERS = 31 };
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

enum { P = 16, Q = 112, ROOM = 40 };

/* A workspace begins at a multiple of 64 bytes: a vector that crosses a cache line takes twice the time. */
static double *aligned(double *w)
{
    return (double *)(((unsigned long long)w + 63) & ~63ULL);
}

static void take_inputs(double *restrict w, const double *restrict x)
{
    for (long long i = 0; i < INPUTS; i++)
        w[i] = x[i];
}

/* One for all: parameters lie from w on, their gradients as far behind them as Q is behind P. */
static __attribute__((noinline)) void move(double *restrict w, double *restrict theirs, int out)
{
    for (long long i = 0; i < 4; i++) {
        for (long long j = 0; j < 4; j++) {
            double *ours = w + 16 + 4*i + j, *other = theirs + i + 4*j;
            *(out ? other : ours) = *(out ? ours : other);
        }
    }
    for (long long i = 0; i < 5; i++) {
        for (long long j = 0; j < 3; j++) {
            double *ours = w + 32 + 4*i + j, *other = theirs + 16 + i + 5*j;
            *(out ? other : ours) = *(out ? ours : other);
        }
    }
}

static void take_parameters(double *restrict w, const double *restrict p)
{
    w[8] = -1.0;
    w[9] = 0.0;
    w[10] = 0.0001;
    w[11] = 1.0;
    move(w, (double *)p, 0);
}

static void take_gradients(double *restrict w, const double *restrict q)
{
    move(w + (Q - P), (double *)q, 0);
}

static void give_parameters(double *restrict w, double *restrict p)
{
    move(w, p, 1);
}

static void give_gradients(double *restrict w, double *restrict q)
{
    move(w + (Q - P), q, 1);
}

static void give_outputs(const double *restrict w, double *restrict y)
{
    y[0] = w[72];
    y[1] = w[73];
    y[2] = w[74];
}

double forward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict y)
{
    w = aligned(w);
    take_inputs(w, x);
    take_parameters(w, p);
    values(w);
    give_outputs(w, y);
    return w[109];
}

void backward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict q)
{
    (void)x, (void)p;
    w = aligned(w);
    take_gradients(w, q);
    gradients(w);
    sinks(w);
    give_gradients(w, q);
}

static void update_all(double *restrict w, double rate, double batch)
{
    if (batch == 1.0)
        for (long long i = 0; i < ROOM; i += 4)
            AT4(w + P + i) -= all4(rate) * AT4(w + Q + i);
    else
        for (long long i = 0; i < ROOM; i += 4)
            AT4(w + P + i) -= all4(rate) * AT4(w + Q + i) / all4(batch);
    for (long long i = 0; i < ROOM; i += 4)
        AT4(w + Q + i) = all4(0.0);
}

/* A byte's quotient is looked up: a row of divisions takes longer than its products. */
struct quotients {
    double of[256];
};

static void take_row(double *restrict x, const struct column *columns, const struct quotients *known, long long count,
                     long long row)
{
    for (long long n = 0; n < count; x += columns[n].width, n++) {
        const struct column *c = &columns[n];
        if (c->kind == BYTES) {
            const unsigned char *cell = (const unsigned char *)c->data + row * c->width;
            const double *of = known[n].of;
            long long i = 0;
            for (; i + 4 <= c->width; i += 4, cell += 4) {
                x[i] = of[cell[0]];
                x[i + 1] = of[cell[1]];
                x[i + 2] = of[cell[2]];
                x[i + 3] = of[cell[3]];
            }
            for (; i < c->width; i++)
                x[i] = of[*cell++];
        } else {
            set_input(x, c, 1, row);
        }
    }
}

/* Gives whether they may go together. */
static int take_rows(double *restrict w, const struct column *columns, const struct quotients *known, long long count,
                     long long first, long long rows)
{
    for (long long r = 0; r < 2; r++) {
        double *x = w + 248 + r * 8;
        take_row(x, columns, known, count, (first + r) % rows);
    }
    return 1;
}

/* Gives how many losses were finite; the first that is not ends the training, before its backward pass. */
long long train(double *restrict x, double *restrict p, double *restrict w, double *restrict y,
                double *restrict q, const struct column *columns, long long count, long long rows,
                long long first_row, long long steps, long long batch, long long taken,
                const double *restrict rates, double *restrict losses)
{
    struct quotients known[count];
    for (long long n = 0; n < count; n++)
        for (long long byte = 0; byte < 256; byte++)
            known[n].of[byte] = byte / columns[n].divisor;
    w = aligned(w);
    take_parameters(w, p);
    take_gradients(w, q);
    long long step = 0, fresh = 0; /* whether all gradients are zero */
    double due = 0.0; /* the rate of an update that waits for the next row */
    int is_due = 0, is_kept = 0; /* whether the row it is made with is kept already */
    for (; step < steps; step++) {
        if (batch > 1 && step + 2 <= steps && batch - taken % batch >= 2
            && take_rows(w, columns, known, count, first_row + step, rows)) {
            values_of_rows(w);
            long long r = 0;
            for (; r < 2; r++) {
                const double *x_r = w + 248 + r * 8;
                memcpy(w, x_r, 0 * sizeof(double));
                memcpy(w + 3, x_r + 3, (INPUTS - 3) * sizeof(double));
                memcpy(w + 56, w + 264 + r * 8, 4 * sizeof(double));
                values_but_first(w);
                losses[step + r] = w[109];
                if (losses[step + r] - losses[step + r] != 0.0)
                    break;
                gradients(w);
                sinks_but_one(w);
                memcpy(w + 280 + r * 8, w + 152, 4 * sizeof(double));
            }
            if (r == 2) {
                sinks_of_rows(w);
                memcpy(w, w + 248 + (r - 1) * 8, INPUTS * sizeof(double));
                taken += r;
                fresh = taken % batch == 0;
                if (fresh) {
                    update_all(w, *rates++, (double)batch);
                }
                step += r - 1;
                continue;
            }
            for (long long before = 0; before < r; before++) { /* those that went well still count */
                memcpy(w, w + 248 + before * 8, INPUTS * sizeof(double));
                memcpy(w + 152, w + 280 + before * 8, 4 * sizeof(double));
                sink_one(w);
            }
            memcpy(w, w + 248 + r * 8, INPUTS * sizeof(double));
            step += r;
            break;
        }
        if (is_due && !is_kept)
            memcpy(w + 232, w + 0, 3 * sizeof(double));
        take_row(w, columns, known, count, (first_row + step) % rows);
        if (is_due)
            descend_and_values(w, due);
        else
            values(w);
        is_kept = 1 && is_due;
        is_due = 0;
        losses[step] = w[109];
        if (losses[step] - losses[step] != 0.0)
            break;
        gradients(w);
        if (batch == 1 && fresh) {
            due = *rates++;
            is_due = 1;
            descend(w, due);
            continue;
        }
        sinks(w);
        if (++taken % batch)
            continue;
        update_all(w, *rates++, (double)batch);
        fresh = 1;
    }
    if (is_due && !is_kept)
        memcpy(w + 232, w + 0, 3 * sizeof(double));
    if (is_due)
        settle(w, due);
    for (long long i = 0; i < INPUTS; i++)
        x[i] = w[i];
    if (steps)
        give_outputs(w, y);
    give_parameters(w, p);
    give_gradients(w, q);
    return step;
}
