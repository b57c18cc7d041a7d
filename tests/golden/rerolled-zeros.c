/* A Value graph as recovered loops: inputs 6, parameters 31, outputs 3. The workspace w holds them in the loops'
   order, in areas. */

#define INPUTS 6
#define PARAMETERS 31
#define LANES 4

enum { X = 0 }; /* inputs */
enum { K = 8 }; /* numbers */
enum { P = 16 }; /* parameters */
enum { V = 56 }; /* values */
enum { Q = 112 }; /* gradients of parameters */
enum { G = 152 }; /* gradients of values */
enum { U = 208 }; /* gradients of what has no place among the values */
enum { LIVE = 232 }; /* the list of inputs that are not skipped */
enum { BEFORE = 240 }; /* inputs of the row whose update waits */
enum { ROWS = 248 }; /* inputs of rows that are taken together */
enum { SUMS = 264 }; /* first sums of rows that are taken together */
enum { FACTORS = 280 }; /* factors of rows that are taken together */
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

#define FIRST 0
#define LISTED 3

/* The inputs that are not skipped. */
struct live {
    long long count;
    int at[LISTED + 1]; /* one more: what is not counted is written, too */
};

__attribute__((noinline, visibility("hidden"))) void loop_0_over_nonzero_inputs(double *restrict w,
                                                                                const struct live *live)
{
    double *const x = w + X;
    double *const p = w + P;
    double *const v = w + V;
    /* Loop 0, over nonzero inputs: for i<4: v[i] = p[i] + sum(t<3: p[4 + i + 4*t] * x[t]) */
    {
        const v4 fixed0 = AT4(p);
        v4 sum0 = fixed0;
        for (long long n = 0; n < live->count; n++) {
            const long long t = live->at[n];
            double *p0 = p + 4 + 4*t;
            double *x1 = x + t;
            sum0 += AT4(p0) * all4(x1[0]);
        }
        AT4(v) = sum0;
    }
}

__attribute__((noinline, visibility("hidden"))) void loops_1_to_12(double *restrict w)
{
    double *const x = w + X;
    double *const p = w + P;
    double *const v = w + V;
    /* Loop 1 */
    AT4(v + 8) = where4(AT4(v) < all4(0.0), all4(0.0), AT4(v));
    /* Loop 2: for i<3: v[16 + i] = p[16 + i] + sum(t<4: p[20 + i + 4*t] * v[8 + t]) */
    {
        const v4 fixed0 = AT4(p + 16);
        v4 sum0 = fixed0;
        for (long long t = 0; t < 4; t++) {
            double *p0 = p + 20 + 4*t;
            double *v1 = v + 8 + t;
            sum0 += AT4(p0) * all4(v1[0]);
        }
        AT4(v + 16) = sum0;
    }
    /* Loop 3 */
    v[20] = (v[16] > v[17] ? v[16] : v[17]);
    /* Loop 4 */
    v[21] = (v[20] > v[18] ? v[20] : v[18]) * -1.0;
    /* Loop 5 */
    AT4(v + 24) = AT4(v + 16) + all4(v[21]);
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
    /* Loop 9 */
    AT4(v + 40) = AT4(v + 32) * all4(v[37]) + all4(0.0001);
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

__attribute__((noinline, visibility("hidden"))) void loops_13_to_26(double *restrict w)
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
    /* Loop 15 */
    AT4(u + 8) = all4(1.0) / AT4(v + 40);
    /* Loop 16 */
    AT4(g + 40) = AT4(u + 8) * (AT4(x + 3) * all4(g[52]));
    /* Loop 17 */
    g[36] = u[0] * (v[34] * g[42]) + u[0] * (v[33] * g[41]) + u[0] * (v[32] * g[40]);
    /* Loop 18 */
    AT4(g + 32) = all4(v[37]) * AT4(g + 40) + all4(g[36]);
    /* Loop 19 */
    AT4(g + 24) = AT4(v + 32) * AT4(g + 32);
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
    /* Loop 26 */
    AT4(g) = truth4(AT4(v + 8) > all4(0.0)) * AT4(g + 8);
}

__attribute__((noinline, visibility("hidden"))) void loops_27_to_28(double *restrict w)
{
    double *const v = w + V;
    double *const q = w + Q;
    double *const g = w + G;
    /* Loop 27: for i<4 j<3: q[20 + 4*i + j] += v[8 + i] * g[16 + j] */
    {
        v4 value0 = AT4(q + 20);
        v4 value1 = AT4(q + 24);
        v4 value2 = AT4(q + 28);
        v4 value3 = AT4(q + 32);
        const v4 shared0 = AT4(g + 16);
        value0 += all4(v[8]) * shared0;
        value1 += all4(v[9]) * shared0;
        value2 += all4(v[10]) * shared0;
        value3 += all4(v[11]) * shared0;
        AT4(q + 20) = value0;
        AT4(q + 24) = value1;
        AT4(q + 28) = value2;
        AT4(q + 32) = value3;
    }
    /* Loop 28 */
    AT4(q + 16) = AT4(q + 16) + AT4(g + 16);
}

__attribute__((noinline, visibility("hidden"))) void loop_29_over_nonzero_inputs(double *restrict w,
                                                                                 const struct live *live)
{
    double *const x = w + X;
    double *const q = w + Q;
    double *const g = w + G;
    /* Loop 29, over nonzero inputs: for i<3 j<4: q[4 + 4*i + j] += x[i] * g[j] */
    {
        const v4 fixed0 = AT4(g);
        for (long long n = 0; n < live->count; n++) {
            const long long i = live->at[n];
            double *target = q + 4 + 4*i;
            v4 value0 = AT4(target);
            double *x0 = x + i;
            value0 += all4(x0[0]) * fixed0;
            AT4(target) = value0;
        }
    }
}

__attribute__((noinline, visibility("hidden"))) void loop_30(double *restrict w)
{
    double *const q = w + Q;
    double *const g = w + G;
    /* Loop 30 */
    AT4(q) = AT4(q) + AT4(g);
}

__attribute__((noinline, visibility("hidden"))) void loops_27_to_28_in_place_and_loop_30_in_place(double *restrict w,
                                                                                                  double rate)
{
    double *const p = w + P;
    double *const v = w + V;
    double *const g = w + G;
    /* Loop 27, in place: for i<4 j<3: p[20 + 4*i + j] -= rate * (v[8 + i] * g[16 + j]) */
    {
        const v4 shared0 = AT4(g + 16);
        v4 value0 = all4(v[8]) * shared0;
        v4 value1 = all4(v[9]) * shared0;
        v4 value2 = all4(v[10]) * shared0;
        v4 value3 = all4(v[11]) * shared0;
        AT4(p + 20) -= all4(rate) * value0;
        AT4(p + 24) -= all4(rate) * value1;
        AT4(p + 28) -= all4(rate) * value2;
        AT4(p + 32) -= all4(rate) * value3;
    }
    /* Loop 28, in place */
    AT4(p + 16) -= all4(rate) * AT4(g + 16);
    /* Loop 30, in place */
    AT4(p) -= all4(rate) * AT4(g);
}

__attribute__((noinline, visibility("hidden"))) void loop_0_after_its_update_keeping_the_inputs(double *restrict w,
                                                                                                double rate)
{
    double *const x = w + X;
    double *const p = w + P;
    double *const v = w + V;
    double *const g = w + G;
    double *const before = w + BEFORE;
    /* Loop 0, after its update keeping the inputs: for i<4: v[i] = p[i] + sum(t<3: p[4 + i + 4*t] * x[t]) */
    {
        const v4 fixed0 = AT4(p);
        const v4 fixed1 = AT4(g);
        const v4 fixed2 = all4(rate);
        v4 sum0 = fixed0;
        for (long long t = 0; t < 3; t++) {
            double *p0 = p + 4 + 4*t;
            double *x1 = x + t;
            double *kept = before + t;
            const v4 old = all4(kept[0]);
            const v4 new0 = AT4(p0) - fixed2 * (old * fixed1);
            AT4(p0) = new0;
            kept[0] = x1[0];
            sum0 += new0 * all4(x1[0]);
        }
        AT4(v) = sum0;
    }
}

__attribute__((noinline, visibility("hidden"))) void loop_29_in_place_of_the_row_before(double *restrict w, double rate)
{
    double *const p = w + P;
    double *const g = w + G;
    double *const before = w + BEFORE;
    /* Loop 29, in place of the row before: for i<3 j<4: p[4 + 4*i + j] -= rate * (before[i] * g[j]) */
    {
        const v4 shared0 = AT4(g);
        v4 value0 = all4(before[0]) * shared0;
        v4 value1 = all4(before[1]) * shared0;
        v4 value2 = all4(before[2]) * shared0;
        AT4(p + 4) -= all4(rate) * value0;
        AT4(p + 8) -= all4(rate) * value1;
        AT4(p + 12) -= all4(rate) * value2;
    }
}

__attribute__((noinline, visibility("hidden"))) void loop_29_in_place_over_nonzero_inputs(double *restrict w,
                                                                                          const struct live *live,
                                                                                          double rate)
{
    double *const x = w + X;
    double *const p = w + P;
    double *const g = w + G;
    /* Loop 29, in place over nonzero inputs: for i<3 j<4: p[4 + 4*i + j] -= rate * (x[i] * g[j]) */
    {
        const v4 fixed0 = AT4(g);
        const v4 fixed1 = all4(rate);
        for (long long n = 0; n < live->count; n++) {
            const long long i = live->at[n];
            double *target = p + 4 + 4*i;
            double *x0 = x + i;
            v4 value0 = all4(x0[0]) * fixed0;
            AT4(target) -= fixed1 * value0;
        }
    }
}

__attribute__((noinline, visibility("hidden"))) void loop_0_for_2_rows(double *restrict w)
{
    double *const p = w + P;
    double *const rows = w + ROWS;
    double *const sums = w + SUMS;
    /* Loop 0, for 2 rows: for i<2 j<4: sums[8*i + j] = p[j] + sum(t<3: p[4 + j + 4*t] * rows[8*i + t]) */
    {
        const v4 fixed0 = AT4(p);
        v4 sum0 = fixed0;
        v4 sum1 = fixed0;
        for (long long t = 0; t < 3; t++) {
            double *p0 = p + 4 + 4*t;
            double *rows1 = rows + t;
            const v4 shared0 = AT4(p0);
            sum0 += shared0 * all4(rows1[0]);
            sum1 += shared0 * all4(rows1[8]);
        }
        AT4(sums) = sum0;
        AT4(sums + 8) = sum1;
    }
}

__attribute__((noinline, visibility("hidden"))) void loop_29_for_2_rows(double *restrict w)
{
    double *const q = w + Q;
    double *const rows = w + ROWS;
    double *const factors = w + FACTORS;
    /* Loop 29, for 2 rows: for i<3 j<4: q[4 + 4*i + j] += rows[i] * factors[j] + rows[8 + i] * factors[8 + j] */
    {
        v4 value0 = AT4(q + 4);
        v4 value1 = AT4(q + 8);
        v4 value2 = AT4(q + 12);
        const v4 shared0 = AT4(factors);
        value0 += all4(rows[0]) * shared0;
        value1 += all4(rows[1]) * shared0;
        value2 += all4(rows[2]) * shared0;
        {
            const v4 shared0 = AT4(factors + 8);
            value0 += all4(rows[8]) * shared0;
            value1 += all4(rows[9]) * shared0;
            value2 += all4(rows[10]) * shared0;
        }
        AT4(q + 4) = value0;
        AT4(q + 8) = value1;
        AT4(q + 12) = value2;
    }
}

static void values(double *restrict w, const struct live *live)
{
    loop_0_over_nonzero_inputs(w, live);
    loops_1_to_12(w);
}

static void gradients(double *restrict w)
{
    loops_13_to_26(w);
}

static void sinks(double *restrict w, const struct live *live)
{
    loops_27_to_28(w);
    loop_29_over_nonzero_inputs(w, live);
    loop_30(w);
}

static void sinks_in_place(double *restrict w, double rate)
{
    loops_27_to_28_in_place_and_loop_30_in_place(w, rate);
}

static void values_after_the_update(double *restrict w, double rate)
{
    loop_0_after_its_update_keeping_the_inputs(w, rate);
    loops_1_to_12(w);
}

static void settle(double *restrict w, double rate)
{
    loop_29_in_place_of_the_row_before(w, rate);
}

static void sink_29_in_place(double *restrict w, const struct live *live, double rate)
{
    loop_29_in_place_over_nonzero_inputs(w, live, rate);
}

static void values_of_2_rows(double *restrict w)
{
    loop_0_for_2_rows(w);
}

static void values_but_loop_0(double *restrict w)
{
    loops_1_to_12(w);
}

static void sinks_but_loop_29(double *restrict w)
{
    loops_27_to_28(w);
    loop_30(w);
}

static void sink_29(double *restrict w, const struct live *live)
{
    loop_29_over_nonzero_inputs(w, live);
}

static void sinks_of_2_rows(double *restrict w)
{
    loop_29_for_2_rows(w);
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
    int due; /* whether an update waits for the next row */
    int kept; /* whether this row's inputs are kept for it already */
    double bound; /* no weight that meets a skipped input is larger */
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

void *memcpy(void *restrict to, const void *restrict from, __SIZE_TYPE__ bytes);
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

/* Inputs that are 0.0 are skipped, as far as that changes no bit: rearrange/zeros.py has the argument.

   FIRST and LISTED are the place of the first such input, and how many there are. The generated code defines
   squares_of_weights and squares_of_factors. What has several callers is not inlined: that would only take time. */

static const double LIMIT = 1e300; /* of magnitudes; what is infinite or NaN is not below it */

static double squares_of_weights(const double *w);
static double squares_of_factors(const double *w);

static __attribute__((noinline)) double squares(const double *a, long long count)
{
    vec sums[4] = {ALL(0.0), ALL(0.0), ALL(0.0), ALL(0.0)};
    long long i = 0;
    for (; i + 4 * LANES <= count; i += 4 * LANES)
        for (int n = 0; n < 4; n++) {
            vec some = AT((double *)a + i + n * LANES);
            sums[n] += some * some;
        }
    vec sum = sums[0] + sums[1] + sums[2] + sums[3];
    double all = EACH(sum, +);
    for (; i < count; i++)
        all += a[i] * a[i];
    return all;
}

/* No weight is larger: x <= 1 + x * x. */
static double bound_of_weights(const double *w)
{
    return 1.0 + squares_of_weights(w);
}

static __attribute__((noinline)) int has_zeros(const double *a)
{
    long long i = 0;
    for (; i + 4 * LANES <= LISTED; i += 4 * LANES) {
        mask found = AT((double *)a + i) == ALL(0.0);
        for (int n = 1; n < 4; n++)
            found |= AT((double *)a + i + n * LANES) == ALL(0.0);
        if (EACH(found, |))
            return 1;
    }
    for (; i < LISTED; i++)
        if (a[i] == 0.0)
            return 1;
    return 0;
}

/* Of rows that are taken together. */
UNUSED static int rows_have_zeros(const double *rows, long long per_row, long long count)
{
    for (long long row = 0; row < count; row++)
        if (has_zeros(rows + row * per_row))
            return 1;
    return 0;
}

static __attribute__((noinline)) void list_every_input(struct live *live)
{
    for (int i = 0; i < LISTED; i++)
        live->at[i] = i;
    live->count = LISTED;
}

typedef unsigned long long __attribute__((may_alias)) word;

static void list_inputs(const double *w, struct live *live, int skips)
{
    if (!skips || !has_zeros(w + FIRST)) {
        if (live->count != LISTED) /* a full list holds every input already */
            list_every_input(live);
        return;
    }
    const word *bits = (const word *)(w + FIRST);
    long long count = 0;
    int i = 0;
    for (; i + 4 <= LISTED; i += 4) {
        live->at[count] = i;
        count += bits[i] << 1 != 0; /* every bit but the sign's */
        live->at[count] = i + 1;
        count += bits[i + 1] << 1 != 0;
        live->at[count] = i + 2;
        count += bits[i + 2] << 1 != 0;
        live->at[count] = i + 3;
        count += bits[i + 3] << 1 != 0;
    }
    for (; i < LISTED; i++) {
        live->at[count] = i;
        count += bits[i] << 1 != 0;
    }
    live->count = count;
}

/* No product of an input and a factor is larger than `reach`, nor is one that an update multiplies with its rate. */
static void check_factors(struct training *t, struct live *live)
{
    const double *w = t->w;
    double reach = (1.0 + squares(w + FIRST, LISTED)) * (1.0 + squares_of_factors(w));
    if (t->taken == t->stretch->batch - 1)
        reach *= 1.0 + t->rates[0] * t->rates[0];
    if (!(reach < LIMIT) && live->count != LISTED)
        list_every_input(live);
    t->state.bound += reach;
}

static double squares_of_weights(const double *restrict w)
{
    return squares(w + P + 4, 12);
}

static double squares_of_factors(const double *restrict w)
{
    return squares(w + G + 0, 4);
}

double forward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict y)
{
    w = aligned(w);
    struct live *const live = (struct live *)(w + LIVE);
    list_every_input(live);
    take_inputs(w, x);
    take_parameters(w, p);
    values(w, live);
    give_outputs(w, y);
    return w[LOSS];
}

void backward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict q)
{
    (void)x, (void)p;
    w = aligned(w);
    struct live *const live = (struct live *)(w + LIVE);
    list_every_input(live);
    take_gradients(w, q);
    gradients(w);
    sinks(w, live);
    give_gradients(w, q);
}

static void enter(struct training *t)
{
    t->w = aligned(t->w);
    double *const w = t->w;
    struct live *const live = (struct live *)(w + LIVE);
    take_parameters(w, t->p);
    take_gradients(w, t->q);
    t->state.bound = bound_of_weights(w);
    list_every_input(live);
}

static int turn(struct training *t)
{
    double *const w = t->w;
    struct live *const live = (struct live *)(w + LIVE);
    if (t->stretch->steps - t->step >= 2 && t->stretch->batch - t->taken >= 2 && live->count == LISTED) {
        /* Rows of one batch share each load of the first layer's weights. */
        for (long long row = 0; row < 2; row++)
            take_row(t, w + ROWS + 8 * row, row);
        if (!rows_have_zeros(w + ROWS + FIRST, 8, 2)) {
            values_of_2_rows(w);
            for (long long row = 0; row < 2; row++) {
                memcpy(w + X + 3, w + ROWS + 3 + 8 * row, 3 * sizeof(double));
                memcpy(w + V, w + SUMS + 8 * row, 4 * sizeof(double));
                values_but_loop_0(w);
                if (!record(t, w[LOSS])) {
                    for (long long earlier = 0; earlier < row; earlier++) {
                        memcpy(w + X, w + ROWS + 8 * earlier, 6 * sizeof(double));
                        memcpy(w + G, w + FACTORS + 8 * earlier, 4 * sizeof(double));
                        sink_29(w, live);
                    }
                    memcpy(w + X, w + ROWS + 8 * row, 6 * sizeof(double));
                    return 0;
                }
                gradients(w);
                sinks_but_loop_29(w);
                memcpy(w + FACTORS + 8 * row, w + G, 4 * sizeof(double));
            }
            sinks_of_2_rows(w);
            memcpy(w + X, w + ROWS + 8, 6 * sizeof(double));
            if (batch_ends(t, 2)) {
                t->state.rate = *t->rates++;
                update_all(w, t->state.rate, (double)t->stretch->batch);
                t->state.gradients_are_zero = 1;
                t->state.bound = bound_of_weights(w);
            }
            return 1;
        }
    }
    take_row(t, w, 0);
    if (!(t->state.bound < LIMIT)) {
        /* Zeros are skipped only while all weights are known to be finite. */
        if (t->state.due) {
            settle(w, t->state.rate);
            t->state.due = 0;
        }
        t->state.bound = bound_of_weights(w);
    }
    list_inputs(w, live, t->state.bound < LIMIT);
    if (t->state.due && live->count == LISTED) {
        values_after_the_update(w, t->state.rate);
        t->state.due = 0;
        t->state.kept = 1;
    } else {
        if (t->state.due) {
            settle(w, t->state.rate);
            t->state.due = 0;
        }
        values(w, live);
        t->state.kept = 0;
    }
    if (!record(t, w[LOSS]))
        return 0;
    gradients(w);
    check_factors(t, live);
    if (t->stretch->batch == 1 && t->state.gradients_are_zero) {
        /* Each row is a batch: no gradient has to be kept. */
        t->state.rate = *t->rates++;
        sinks_in_place(w, t->state.rate);
        if (live->count == LISTED) {
            if (!t->state.kept)
                memcpy(w + BEFORE, w + X, 3 * sizeof(double));
            t->state.due = 1;
        } else {
            sink_29_in_place(w, live, t->state.rate);
        }
    } else {
        sinks(w, live);
        if (batch_ends(t, 1)) {
            t->state.rate = *t->rates++;
            update_all(w, t->state.rate, (double)t->stretch->batch);
            t->state.gradients_are_zero = 1;
            t->state.bound = bound_of_weights(w);
        }
    }
    return 1;
}

static void leave(struct training *t)
{
    double *const w = t->w;
    if (t->state.due)
        settle(w, t->state.rate);
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
