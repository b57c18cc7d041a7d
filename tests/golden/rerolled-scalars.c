/* A Value graph as recovered loops.
   x: 6 inputs   p: 31 parameters   w: workspace of 240   y: 3 outputs
   q: gradients of the parameters   No two of these buffers overlap. The workspace holds copies, in the loops' order. */

double exp(double);
double log(double);
double pow(double, double);
void *memcpy(void *restrict to, const void *restrict from, __SIZE_TYPE__ bytes);
#define INLINE static inline __attribute__((always_inline, unused))
#define UNUSED __attribute__((unused))


__attribute__((noinline, visibility("hidden"))) void value_0(double *restrict w)
{
    {
        const double h0 = w[16];
        const double h1 = w[17];
        const double h2 = w[18];
        const double h3 = w[19];
        double a0 = h0;
        double a1 = h1;
        double a2 = h2;
        double a3 = h3;
        for (long long t = 0; t < 3; t++) {
            double *r0 = w + 20 + 4*t;
            double *r1 = w + t;
            const double s0 = r1[0];
            a0 += r0[0] * s0;
            a1 += r0[1] * s0;
            a2 += r0[2] * s0;
            a3 += r0[3] * s0;
        }
        w[56] = a0;
        w[57] = a1;
        w[58] = a2;
        w[59] = a3;
    }
    {
        double a0 = w[56] < 0.0 ? 0.0 : w[56];
        double a1 = w[57] < 0.0 ? 0.0 : w[57];
        double a2 = w[58] < 0.0 ? 0.0 : w[58];
        double a3 = w[59] < 0.0 ? 0.0 : w[59];
        w[64] = a0;
        w[65] = a1;
        w[66] = a2;
        w[67] = a3;
    }
    {
        const double h0 = w[32];
        const double h1 = w[33];
        const double h2 = w[34];
        double a0 = h0;
        double a1 = h1;
        double a2 = h2;
        for (long long t = 0; t < 4; t++) {
            double *r0 = w + 36 + 4*t;
            double *r1 = w + 64 + t;
            const double s0 = r1[0];
            a0 += r0[0] * s0;
            a1 += r0[1] * s0;
            a2 += r0[2] * s0;
        }
        w[72] = a0;
        w[73] = a1;
        w[74] = a2;
    }
    w[76] = (w[72] > w[73] ? w[72] : w[73]);
    w[77] = (w[76] > w[74] ? w[76] : w[74]) * -1.0;
    {
        double a0 = w[72];
        double a1 = w[73];
        double a2 = w[74];
        {
            const double s0 = w[77];
            a0 += s0;
            a1 += s0;
            a2 += s0;
        }
        w[80] = a0;
        w[81] = a1;
        w[82] = a2;
    }
}

__attribute__((noinline, visibility("hidden"))) void value_6(double *restrict w)
{
    for (long long i = 0; i < 3; i++) {
        double *o = w + 88 + i;
        double *r0 = w + 80 + i;
        double a0 = exp(r0[0]);
        o[0] = a0;
    }
    w[92] = w[88] + w[89] + w[90];
    w[93] = pow(w[92], -1.0);
    {
        const double s0 = w[93];
        double a0 = w[88] * s0;
        double a1 = w[89] * s0;
        double a2 = w[90] * s0;
        {
            const double s0 = 0.0001;
            a0 += s0;
            a1 += s0;
            a2 += s0;
        }
        w[96] = a0;
        w[97] = a1;
        w[98] = a2;
    }
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
        const double h0 = w[168];
        const double h1 = w[169];
        const double h2 = w[170];
        for (long long i = 0; i < 4; i++) {
            double *o = w + 132 + 4*i;
            double a0 = o[0];
            double a1 = o[1];
            double a2 = o[2];
            double *r0 = w + 64 + i;
            const double s0 = r0[0];
            a0 += s0 * h0;
            a1 += s0 * h1;
            a2 += s0 * h2;
            o[0] = a0;
            o[1] = a1;
            o[2] = a2;
        }
    }
    {
        double a0 = w[128];
        double a1 = w[129];
        double a2 = w[130];
        a0 += w[168];
        a1 += w[169];
        a2 += w[170];
        w[128] = a0;
        w[129] = a1;
        w[130] = a2;
    }
    {
        const double h0 = w[152];
        const double h1 = w[153];
        const double h2 = w[154];
        const double h3 = w[155];
        for (long long i = 0; i < 3; i++) {
            double *o = w + 116 + 4*i;
            double a0 = o[0];
            double a1 = o[1];
            double a2 = o[2];
            double a3 = o[3];
            double *r0 = w + i;
            const double s0 = r0[0];
            a0 += s0 * h0;
            a1 += s0 * h1;
            a2 += s0 * h2;
            a3 += s0 * h3;
            o[0] = a0;
            o[1] = a1;
            o[2] = a2;
            o[3] = a3;
        }
    }
    {
        double a0 = w[112];
        double a1 = w[113];
        double a2 = w[114];
        double a3 = w[115];
        a0 += w[152];
        a1 += w[153];
        a2 += w[154];
        a3 += w[155];
        w[112] = a0;
        w[113] = a1;
        w[114] = a2;
        w[115] = a3;
    }
}

__attribute__((noinline, visibility("hidden"))) void gradient_13(double *restrict w)
{
    w[204] = -1.0 * 1.0;
    w[208] = -1.0 * pow(w[92], -2.0);
    {
        double a0 = 1.0 / w[96];
        double a1 = 1.0 / w[97];
        double a2 = 1.0 / w[98];
        w[216] = a0;
        w[217] = a1;
        w[218] = a2;
    }
    {
        const double s0 = w[204];
        double a0 = w[216] * (w[3] * s0);
        double a1 = w[217] * (w[4] * s0);
        double a2 = w[218] * (w[5] * s0);
        w[192] = a0;
        w[193] = a1;
        w[194] = a2;
    }
    w[188] = w[208] * (w[90] * w[194]) + w[208] * (w[89] * w[193]) + w[208] * (w[88] * w[192]);
    {
        const double s0 = w[93];
        double a0 = s0 * w[192];
        double a1 = s0 * w[193];
        double a2 = s0 * w[194];
        {
            const double s0 = w[188];
            a0 += s0;
            a1 += s0;
            a2 += s0;
        }
        w[184] = a0;
        w[185] = a1;
        w[186] = a2;
    }
    {
        double a0 = w[88] * w[184];
        double a1 = w[89] * w[185];
        double a2 = w[90] * w[186];
        w[176] = a0;
        w[177] = a1;
        w[178] = a2;
    }
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
}

__attribute__((noinline, visibility("hidden"))) void gradient_26(double *restrict w)
{
    {
        double a0 = (w[64] > 0.0) * w[160];
        double a1 = (w[65] > 0.0) * w[161];
        double a2 = (w[66] > 0.0) * w[162];
        double a3 = (w[67] > 0.0) * w[163];
        w[152] = a0;
        w[153] = a1;
        w[154] = a2;
        w[155] = a3;
    }
}

__attribute__((noinline, visibility("hidden"))) void descend_27(double *restrict w, double rate UNUSED)
{
    {
        const double h0 = w[168];
        const double h1 = w[169];
        const double h2 = w[170];
        const double h3 = rate;
        for (long long i = 0; i < 4; i++) {
            double *o = w + 36 + 4*i;
            double *r0 = w + 64 + i;
            const double s0 = r0[0];
            double a0 = s0 * h0;
            double a1 = s0 * h1;
            double a2 = s0 * h2;
            o[0] -= h3 * a0;
            o[1] -= h3 * a1;
            o[2] -= h3 * a2;
        }
    }
    {
        double a0 = w[168];
        double a1 = w[169];
        double a2 = w[170];
        w[32] -= rate * a0;
        w[33] -= rate * a1;
        w[34] -= rate * a2;
    }
    {
        const double h0 = w[152];
        const double h1 = w[153];
        const double h2 = w[154];
        const double h3 = w[155];
        const double h4 = rate;
        for (long long i = 0; i < 3; i++) {
            double *o = w + 20 + 4*i;
            double *r0 = w + i;
            const double s0 = r0[0];
            double a0 = s0 * h0;
            double a1 = s0 * h1;
            double a2 = s0 * h2;
            double a3 = s0 * h3;
            o[0] -= h4 * a0;
            o[1] -= h4 * a1;
            o[2] -= h4 * a2;
            o[3] -= h4 * a3;
        }
    }
    {
        double a0 = w[152];
        double a1 = w[153];
        double a2 = w[154];
        double a3 = w[155];
        w[16] -= rate * a0;
        w[17] -= rate * a1;
        w[18] -= rate * a2;
        w[19] -= rate * a3;
    }
}


static void values(double *restrict w)
{
    value_0(w);
    value_6(w);
}

static void gradients(double *restrict w)
{
    gradient_13(w);
    gradient_26(w);
}

static void sinks(double *restrict w)
{
    sink_27(w);
}

static void descend(double *restrict w, double rate UNUSED)
{
    descend_27(w, rate);
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
        for (long long i = 0; i < ROOM; i += 1)
            *(w + P + i) -= rate * *(w + Q + i);
    else
        for (long long i = 0; i < ROOM; i += 1)
            *(w + P + i) -= rate * *(w + Q + i) / batch;
    for (long long i = 0; i < ROOM; i += 1)
        *(w + Q + i) = 0.0;
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
    for (; step < steps; step++) {
        take_row(w, columns, known, count, (first_row + step) % rows);
        values(w);
        losses[step] = w[109];
        if (losses[step] - losses[step] != 0.0)
            break;
        gradients(w);
        if (batch == 1 && fresh) {
            descend(w, *rates++);
            continue;
        }
        sinks(w);
        if (++taken % batch)
            continue;
        update_all(w, *rates++, (double)batch);
        fresh = 1;
    }
    for (long long i = 0; i < INPUTS; i++)
        x[i] = w[i];
    if (steps)
        give_outputs(w, y);
    give_parameters(w, p);
    give_gradients(w, q);
    return step;
}
