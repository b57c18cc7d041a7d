/* A Value graph as recovered loops: inputs 6, parameters 31, outputs 3. The workspace w holds them in the loops'
   order, in areas. */

#define INPUTS 6
#define PARAMETERS 31
#define LANES 1

enum { X = 0 }; /* inputs */
enum { K = 8 }; /* numbers */
enum { P = 16 }; /* parameters */
enum { V = 56 }; /* values */
enum { Q = 112 }; /* gradients of parameters */
enum { G = 152 }; /* gradients of values */
enum { U = 208 }; /* gradients of what has no place among the values */
double exp(double);
double log(double);
double pow(double, double);

/* Vectors of doubles. LANES is the width of the widest; `vec` is that one, or a double where there are no vectors. */

#define UNUSED __attribute__((unused))
#define INLINE static inline __attribute__((always_inline, unused))

#if LANES == 1
typedef double vec;
typedef long long mask;
#define ALL(a) (a)
#define AT(place) (*(place))
#define EACH(a, op) (a)
#else
/* v4: four doubles, m4: four results of a comparison, AT4: as they lie in memory, at any double. */
#define VECTORS(N, ...)                                                                                                \
    typedef double v##N __attribute__((vector_size(8 * N)));                                                           \
    typedef long long m##N __attribute__((vector_size(8 * N)));                                                        \
    typedef v##N u##N __attribute__((aligned(8), may_alias));                                                          \
    INLINE v##N all##N(double a) { return (v##N){__VA_ARGS__}; }                                                       \
    INLINE v##N where##N(m##N is, v##N a, v##N b) { return (v##N)((is & (m##N)a) | (~is & (m##N)b)); }                 \
    INLINE v##N truth##N(m##N is) { return (v##N)(is & (m##N)all##N(1.0)); }

VECTORS(2, a, a)
#define AT2(place) (*(u2 *)(place))
#if LANES >= 4
VECTORS(4, a, a, a, a)
#define AT4(place) (*(u4 *)(place))
#endif
#if LANES >= 8
VECTORS(8, a, a, a, a, a, a, a, a)
#define AT8(place) (*(u8 *)(place))
#endif

#define JOINED(a, b) a##b
#define JOIN(a, b) JOINED(a, b)
typedef JOIN(v, LANES) vec;
typedef JOIN(m, LANES) mask;
#define ALL JOIN(all, LANES)
#define AT JOIN(AT, LANES)
/* All lanes of a vector in one: their sum, or whether any of them is true. */
#define EACH2(a, op) ((a)[0] op(a)[1])
#define EACH4(a, op) (EACH2(a, op) op(a)[2] op(a)[3])
#define EACH8(a, op) (EACH4(a, op) op(a)[4] op(a)[5] op(a)[6] op(a)[7])
#define EACH JOIN(EACH, LANES)
#endif

__attribute__((noinline, visibility("hidden"))) void loops_0_to_5(double *restrict w)
{
    double *const x = w + X;
    double *const p = w + P;
    double *const v = w + V;
    /* Loop 0: for i<4: v[i] = p[i] + sum(t<3: p[4 + i + 4*t] * x[t]) */
    {
        const double fixed0 = p[0];
        const double fixed1 = p[1];
        const double fixed2 = p[2];
        const double fixed3 = p[3];
        double sum0 = fixed0;
        double sum1 = fixed1;
        double sum2 = fixed2;
        double sum3 = fixed3;
        for (long long t = 0; t < 3; t++) {
            double *p0 = p + 4 + 4*t;
            double *x1 = x + t;
            const double shared0 = x1[0];
            sum0 += p0[0] * shared0;
            sum1 += p0[1] * shared0;
            sum2 += p0[2] * shared0;
            sum3 += p0[3] * shared0;
        }
        v[0] = sum0;
        v[1] = sum1;
        v[2] = sum2;
        v[3] = sum3;
    }
    /* Loop 1: for i<4: v[8 + i] = (0.0 if v[i] < 0.0 else v[i]) */
    {
        double value0 = v[0] < 0.0 ? 0.0 : v[0];
        double value1 = v[1] < 0.0 ? 0.0 : v[1];
        double value2 = v[2] < 0.0 ? 0.0 : v[2];
        double value3 = v[3] < 0.0 ? 0.0 : v[3];
        v[8] = value0;
        v[9] = value1;
        v[10] = value2;
        v[11] = value3;
    }
    /* Loop 2: for i<3: v[16 + i] = p[16 + i] + sum(t<4: p[20 + i + 4*t] * v[8 + t]) */
    {
        const double fixed0 = p[16];
        const double fixed1 = p[17];
        const double fixed2 = p[18];
        double sum0 = fixed0;
        double sum1 = fixed1;
        double sum2 = fixed2;
        for (long long t = 0; t < 4; t++) {
            double *p0 = p + 20 + 4*t;
            double *v1 = v + 8 + t;
            const double shared0 = v1[0];
            sum0 += p0[0] * shared0;
            sum1 += p0[1] * shared0;
            sum2 += p0[2] * shared0;
        }
        v[16] = sum0;
        v[17] = sum1;
        v[18] = sum2;
    }
    /* Loop 3 */
    v[20] = (v[16] > v[17] ? v[16] : v[17]);
    /* Loop 4 */
    v[21] = (v[20] > v[18] ? v[20] : v[18]) * -1.0;
    /* Loop 5: for i<3: v[24 + i] = v[16 + i] + v[21] */
    {
        double value0 = v[16];
        double value1 = v[17];
        double value2 = v[18];
        {
            const double shared0 = v[21];
            value0 += shared0;
            value1 += shared0;
            value2 += shared0;
        }
        v[24] = value0;
        v[25] = value1;
        v[26] = value2;
    }
}

__attribute__((noinline, visibility("hidden"))) void loops_6_to_12(double *restrict w)
{
    double *const x = w + X;
    double *const v = w + V;
    /* Loop 6: for i<3: v[32 + i] = exp(v[24 + i]) */
    for (long long i = 0; i < 3; i++) {
        double *target = v + 32 + i;
        double *v0 = v + 24 + i;
        double value0 = exp(v0[0]);
        target[0] = value0;
    }
    /* Loop 7 */
    v[36] = v[32] + v[33] + v[34];
    /* Loop 8 */
    v[37] = pow(v[36], -1.0);
    /* Loop 9: for i<3: v[40 + i] = v[32 + i] * v[37] + 0.0001 */
    {
        const double shared0 = v[37];
        double value0 = v[32] * shared0;
        double value1 = v[33] * shared0;
        double value2 = v[34] * shared0;
        {
            const double shared0 = 0.0001;
            value0 += shared0;
            value1 += shared0;
            value2 += shared0;
        }
        v[40] = value0;
        v[41] = value1;
        v[42] = value2;
    }
    /* Loop 10: for i<3: v[48 + i] = log(v[40 + i]) */
    for (long long i = 0; i < 3; i++) {
        double *target = v + 48 + i;
        double *v0 = v + 40 + i;
        double value0 = log(v0[0]);
        target[0] = value0;
    }
    /* Loop 11 */
    v[52] = x[3] * v[48] + x[4] * v[49] + x[5] * v[50];
    /* Loop 12 */
    v[53] = v[52] * -1.0;
}

__attribute__((noinline, visibility("hidden"))) void loops_13_to_25(double *restrict w)
{
    double *const x = w + X;
    double *const p = w + P;
    double *const v = w + V;
    double *const g = w + G;
    double *const u = w + U;
    /* Loop 13 */
    g[52] = -1.0 * 1.0;
    /* Loop 14 */
    u[0] = -1.0 * pow(v[36], -2.0);
    /* Loop 15: for i<3: u[8 + i] = 1.0 / v[40 + i] */
    {
        double value0 = 1.0 / v[40];
        double value1 = 1.0 / v[41];
        double value2 = 1.0 / v[42];
        u[8] = value0;
        u[9] = value1;
        u[10] = value2;
    }
    /* Loop 16: for i<3: g[40 + i] = u[8 + i] * (x[3 + i] * g[52]) */
    {
        const double shared0 = g[52];
        double value0 = u[8] * (x[3] * shared0);
        double value1 = u[9] * (x[4] * shared0);
        double value2 = u[10] * (x[5] * shared0);
        g[40] = value0;
        g[41] = value1;
        g[42] = value2;
    }
    /* Loop 17 */
    g[36] = u[0] * (v[34] * g[42]) + u[0] * (v[33] * g[41]) + u[0] * (v[32] * g[40]);
    /* Loop 18: for i<3: g[32 + i] = v[37] * g[40 + i] + g[36] */
    {
        const double shared0 = v[37];
        double value0 = shared0 * g[40];
        double value1 = shared0 * g[41];
        double value2 = shared0 * g[42];
        {
            const double shared0 = g[36];
            value0 += shared0;
            value1 += shared0;
            value2 += shared0;
        }
        g[32] = value0;
        g[33] = value1;
        g[34] = value2;
    }
    /* Loop 19: for i<3: g[24 + i] = v[32 + i] * g[32 + i] */
    {
        double value0 = v[32] * g[32];
        double value1 = v[33] * g[33];
        double value2 = v[34] * g[34];
        g[24] = value0;
        g[25] = value1;
        g[26] = value2;
    }
    /* Loop 20 */
    u[12] = -1.0 * g[26] + -1.0 * g[25] + -1.0 * g[24];
    /* Loop 21 */
    g[18] = g[26] + (v[20] > v[18] ? 0.0 : u[12]);
    /* Loop 22 */
    g[20] = (v[20] > v[18] ? u[12] : 0.0);
    /* Loop 23 */
    g[17] = g[25] + (v[16] > v[17] ? 0.0 : g[20]);
    /* Loop 24 */
    g[16] = g[24] + (v[16] > v[17] ? g[20] : 0.0);
    /* Loop 25: for i<4: g[8 + i] = sum(t<3: p[22 + 4*i - t] * g[18 - t]) */
    {
        double sum0 = 0.0;
        double sum1 = 0.0;
        double sum2 = 0.0;
        double sum3 = 0.0;
        for (long long t = 0; t < 3; t++) {
            double *p0 = p + 22 - t;
            double *g1 = g + 18 - t;
            const double shared0 = g1[0];
            sum0 += p0[0] * shared0;
            sum1 += p0[4] * shared0;
            sum2 += p0[8] * shared0;
            sum3 += p0[12] * shared0;
        }
        g[8] = sum0;
        g[9] = sum1;
        g[10] = sum2;
        g[11] = sum3;
    }
}

__attribute__((noinline, visibility("hidden"))) void loop_26(double *restrict w)
{
    double *const v = w + V;
    double *const g = w + G;
    /* Loop 26: for i<4: g[i] = (v[8 + i] > 0.0) * g[8 + i] */
    {
        double value0 = (v[8] > 0.0) * g[8];
        double value1 = (v[9] > 0.0) * g[9];
        double value2 = (v[10] > 0.0) * g[10];
        double value3 = (v[11] > 0.0) * g[11];
        g[0] = value0;
        g[1] = value1;
        g[2] = value2;
        g[3] = value3;
    }
}

__attribute__((noinline, visibility("hidden"))) void loops_27_to_30(double *restrict w)
{
    double *const x = w + X;
    double *const v = w + V;
    double *const q = w + Q;
    double *const g = w + G;
    /* Loop 27: for i<4 j<3: q[20 + 4*i + j] += v[8 + i] * g[16 + j] */
    {
        const double fixed0 = g[16];
        const double fixed1 = g[17];
        const double fixed2 = g[18];
        for (long long i = 0; i < 4; i++) {
            double *target = q + 20 + 4*i;
            double value0 = target[0];
            double value1 = target[1];
            double value2 = target[2];
            double *v0 = v + 8 + i;
            const double shared0 = v0[0];
            value0 += shared0 * fixed0;
            value1 += shared0 * fixed1;
            value2 += shared0 * fixed2;
            target[0] = value0;
            target[1] = value1;
            target[2] = value2;
        }
    }
    /* Loop 28: for i<3: q[16 + i] += g[16 + i] */
    {
        double value0 = q[16];
        double value1 = q[17];
        double value2 = q[18];
        value0 += g[16];
        value1 += g[17];
        value2 += g[18];
        q[16] = value0;
        q[17] = value1;
        q[18] = value2;
    }
    /* Loop 29: for i<3 j<4: q[4 + 4*i + j] += x[i] * g[j] */
    {
        const double fixed0 = g[0];
        const double fixed1 = g[1];
        const double fixed2 = g[2];
        const double fixed3 = g[3];
        for (long long i = 0; i < 3; i++) {
            double *target = q + 4 + 4*i;
            double value0 = target[0];
            double value1 = target[1];
            double value2 = target[2];
            double value3 = target[3];
            double *x0 = x + i;
            const double shared0 = x0[0];
            value0 += shared0 * fixed0;
            value1 += shared0 * fixed1;
            value2 += shared0 * fixed2;
            value3 += shared0 * fixed3;
            target[0] = value0;
            target[1] = value1;
            target[2] = value2;
            target[3] = value3;
        }
    }
    /* Loop 30: for i<4: q[i] += g[i] */
    {
        double value0 = q[0];
        double value1 = q[1];
        double value2 = q[2];
        double value3 = q[3];
        value0 += g[0];
        value1 += g[1];
        value2 += g[2];
        value3 += g[3];
        q[0] = value0;
        q[1] = value1;
        q[2] = value2;
        q[3] = value3;
    }
}

__attribute__((noinline, visibility("hidden"))) void loops_27_to_30_in_place(double *restrict w, double rate)
{
    double *const x = w + X;
    double *const p = w + P;
    double *const v = w + V;
    double *const g = w + G;
    /* Loop 27, in place: for i<4 j<3: p[20 + 4*i + j] -= rate * (v[8 + i] * g[16 + j]) */
    {
        const double fixed0 = g[16];
        const double fixed1 = g[17];
        const double fixed2 = g[18];
        const double fixed3 = rate;
        for (long long i = 0; i < 4; i++) {
            double *target = p + 20 + 4*i;
            double *v0 = v + 8 + i;
            const double shared0 = v0[0];
            double value0 = shared0 * fixed0;
            double value1 = shared0 * fixed1;
            double value2 = shared0 * fixed2;
            target[0] -= fixed3 * value0;
            target[1] -= fixed3 * value1;
            target[2] -= fixed3 * value2;
        }
    }
    /* Loop 28, in place: for i<3: p[16 + i] -= rate * (g[16 + i]) */
    {
        double value0 = g[16];
        double value1 = g[17];
        double value2 = g[18];
        p[16] -= rate * value0;
        p[17] -= rate * value1;
        p[18] -= rate * value2;
    }
    /* Loop 29, in place: for i<3 j<4: p[4 + 4*i + j] -= rate * (x[i] * g[j]) */
    {
        const double fixed0 = g[0];
        const double fixed1 = g[1];
        const double fixed2 = g[2];
        const double fixed3 = g[3];
        const double fixed4 = rate;
        for (long long i = 0; i < 3; i++) {
            double *target = p + 4 + 4*i;
            double *x0 = x + i;
            const double shared0 = x0[0];
            double value0 = shared0 * fixed0;
            double value1 = shared0 * fixed1;
            double value2 = shared0 * fixed2;
            double value3 = shared0 * fixed3;
            target[0] -= fixed4 * value0;
            target[1] -= fixed4 * value1;
            target[2] -= fixed4 * value2;
            target[3] -= fixed4 * value3;
        }
    }
    /* Loop 30, in place: for i<4: p[i] -= rate * (g[i]) */
    {
        double value0 = g[0];
        double value1 = g[1];
        double value2 = g[2];
        double value3 = g[3];
        p[0] -= rate * value0;
        p[1] -= rate * value1;
        p[2] -= rate * value2;
        p[3] -= rate * value3;
    }
}

static void values(double *restrict w)
{
    loops_0_to_5(w);
    loops_6_to_12(w);
}

static void gradients(double *restrict w)
{
    loops_13_to_25(w);
    loop_26(w);
}

static void sinks(double *restrict w)
{
    loops_27_to_30(w);
}

static void sinks_in_place(double *restrict w, double rate)
{
    loops_27_to_30_in_place(w, rate);
}

/* The one interface between a compiled graph and its caller. cffi reads this file as it stands.

   x: inputs of one row   p: parameters   w: workspace   y: outputs   q: gradients of the parameters
   No two of these buffers overlap. */

/* Some inputs of every row, side by side with those of the other columns. */
struct column {
    const void *data;
    long long width; /* inputs that it makes */
    double divisor;  /* BYTES become byte / divisor */
    long long kind;  /* DOUBLES, BYTES, or CLASSES: a label, which makes `width` inputs, all 0.0 except one */
};

struct buffers {
    double *x;
    double *p;
    double *w;
    double *y;
    double *q;
};

/* Steps over rows that wrap around, with an update after every `batch` of them. */
struct stretch {
    const struct column *columns;
    long long column_count;
    long long rows;
    long long first_row;
    long long steps;
    long long batch;
    long long taken;     /* steps since the last update */
    const double *rates; /* one for each update to come */
    double *losses;      /* of each step: written here */
};

void set_input(double *x, const struct column *columns, long long count, long long row);
double forward(const double *x, const double *p, double *w, double *y);
void backward(const double *x, const double *p, double *w, double *q); /* adds to q; after forward */
void zero_grad(double *q);
void update(double *p, double *q, double rate, double batch); /* p -= rate * q / batch; q = 0 */

/* Returns how many losses are finite. The first that is not ends the training, before its backward pass. */
long long train(const struct buffers *buffers, const struct stretch *stretch);

/* What the turns of a stretch keep between them. */
struct state {
    double rate; /* of the update that is made, or waits */
    int gradients_are_zero; /* an update has cleared them: from now on each row may be alone */
};

#define HAS_STATE 1

/* A stretch of training under way: what each turn of the training loop reads and changes.

   A kernel whose turns keep something between them defines HAS_STATE and `struct state` before this file. */

enum column_kind { DOUBLES, BYTES, CLASSES };

/* A byte's quotient is looked up: a row of divisions takes longer than a layer's products. */
struct quotients {
    double of[256];
};

struct training {
    const struct stretch *stretch;
    const struct quotients *quotients; /* for each column, used where it holds BYTES */
    double *x, *p, *w, *y, *q;
    long long step;      /* losses that are recorded: all finite */
    long long row;       /* the next one */
    long long taken;     /* rows since the last update */
    const double *rates; /* the next update's comes first */
#ifdef HAS_STATE
    struct state state;
#endif
};

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

/* Read the row that comes `ahead` rows after the next one. */
static void take_row(const struct training *t, double *restrict x, long long ahead)
{
    const struct stretch *s = t->stretch;
    long long row = ahead ? (t->row + ahead) % s->rows : t->row;
    for (long long n = 0; n < s->column_count; x += s->columns[n].width, n++)
        read_column(x, &s->columns[n], row, t->quotients[n].of);
}

/* Record the loss of the row that was taken. Returns whether it is finite; only then does the row count. */
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

/* Count rows whose gradients were added. Returns whether the batch is complete. */
static int batch_ends(struct training *t, long long rows)
{
    t->taken += rows;
    if (t->taken < t->stretch->batch)
        return 0;
    t->taken = 0;
    return 1;
}

enum { ROOM = 40 };
enum { LOSS = V + 53 };

/* The way into the workspace and out of it, around the loops of a graph.

   The generated code defines P, Q and ROOM (where parameters and their gradients lie, and how many doubles each area
   has) and `move`, which copies all parameters between the caller's order and the loops'. */

static void move(double *restrict w, double *restrict theirs, int out);

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

static void give_inputs(const double *restrict w, double *restrict x)
{
    for (long long i = 0; i < INPUTS; i++)
        x[i] = w[i];
}

static void take_parameters(double *restrict w, const double *restrict p)
{
    move(w, (double *)p, 0);
}

static void give_parameters(double *restrict w, double *restrict p)
{
    move(w, p, 1);
}

/* Each gradient lies as far behind its parameter as Q is behind P. */
static void take_gradients(double *restrict w, const double *restrict q)
{
    move(w + (Q - P), (double *)q, 0);
}

static void give_gradients(double *restrict w, double *restrict q)
{
    move(w + (Q - P), q, 1);
}

static void update_all(double *restrict w, double rate, double batch)
{
    if (batch == 1.0)
        for (long long i = 0; i < ROOM; i += LANES)
            AT(w + P + i) -= ALL(rate) * AT(w + Q + i);
    else
        for (long long i = 0; i < ROOM; i += LANES)
            AT(w + P + i) -= ALL(rate) * AT(w + Q + i) / ALL(batch);
    for (long long i = 0; i < ROOM; i += LANES)
        AT(w + Q + i) = ALL(0.0);
}

static __attribute__((noinline)) void move(double *restrict w, double *restrict theirs, int out)
{
    for (long long i = 0; i < 4; i++) {
        for (long long j = 0; j < 4; j++) {
            double *ours = w + P + 4*i + j;
            double *other = theirs + i + 4*j;
            *(out ? other : ours) = *(out ? ours : other);
        }
    }
    for (long long i = 0; i < 5; i++) {
        for (long long j = 0; j < 3; j++) {
            double *ours = w + P + 16 + 4*i + j;
            double *other = theirs + 16 + i + 5*j;
            *(out ? other : ours) = *(out ? ours : other);
        }
    }
}

static void give_outputs(const double *restrict w, double *restrict y)
{
    y[0] = w[V + 16];
    y[1] = w[V + 17];
    y[2] = w[V + 18];
}

double forward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict y)
{
    w = aligned(w);
    take_inputs(w, x);
    take_parameters(w, p);
    values(w);
    give_outputs(w, y);
    return w[LOSS];
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

static void enter(struct training *t)
{
    t->w = aligned(t->w);
    double *const w = t->w;
    take_parameters(w, t->p);
    take_gradients(w, t->q);
}

static int turn(struct training *t)
{
    double *const w = t->w;
    take_row(t, w, 0);
    values(w);
    if (!record(t, w[LOSS]))
        return 0;
    gradients(w);
    if (t->stretch->batch == 1 && t->state.gradients_are_zero) {
        /* Each row is a batch: no gradient has to be kept. */
        t->state.rate = *t->rates++;
        sinks_in_place(w, t->state.rate);
    } else {
        sinks(w);
        if (batch_ends(t, 1)) {
            t->state.rate = *t->rates++;
            update_all(w, t->state.rate, (double)t->stretch->batch);
            t->state.gradients_are_zero = 1;
        }
    }
    return 1;
}

static void leave(struct training *t)
{
    double *const w = t->w;
    give_inputs(w, t->x);
    give_outputs(w, t->y);
    give_parameters(w, t->p);
    give_gradients(w, t->q);
}

/* What every kernel in C ends with: reading one row, updating, and the training loop.

   A kernel defines before this file:
     PARAMETERS   how many there are
     enter(t)     take parameters and gradients from the caller's buffers
     turn(t)      train on the next row, or on several; return 0 if a loss was not finite, which ends the training
     leave(t)     give parameters, gradients, the last row and its outputs back */

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

long long train(const struct buffers *b, const struct stretch *s)
{
    if (s->steps == 0)
        return 0;
    struct quotients quotients[s->column_count];
    for (long long n = 0; n < s->column_count; n++)
        for (long long byte = 0; byte < 256 && s->columns[n].kind == BYTES; byte++)
            quotients[n].of[byte] = byte / s->columns[n].divisor;
    struct training t = {
        .stretch = s,
        .quotients = quotients,
        .x = b->x,
        .p = b->p,
        .w = b->w,
        .y = b->y,
        .q = b->q,
        .row = s->first_row,
        .taken = s->taken,
        .rates = s->rates,
    };
    enter(&t);
    while (t.step < s->steps && turn(&t))
        ;
    leave(&t);
    return t.step;
}
