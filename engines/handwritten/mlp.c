/* A handwritten MLP of two layers, for one sample at a time, in the reference's order of operations.

   Neurons are the lanes of vectors. A lane adds its terms one after the other, like the scalar program, so no bit
   differs. Lanes beyond the last neuron hold 0.

   x: inputs, then targets   p, q: neuron by neuron, weights before the bias

   vectors.h, training.h and these macros come before this file; if it is sparse, live.h and zeros.h, too:
     INPUTS, HIDDEN, OUTPUTS   sizes of the network
     LANES                     doubles in a vector: 2, 4 or 8
     CROSS_ENTROPY             whether the loss is cross-entropy, not squared error
     SPARSE                    whether the first layer skips inputs that are 0 */

/* A layer's neurons are divided into equal blocks, as few as possible, such that the sums of a block fit into registers:
   into 7 of 8 doubles. On AVX each takes two of the 16 registers; the input and the product take the other two. */
#define BLOCKS(neurons) ((neurons + 55) / 56)
#define NEEDED(neurons) ((neurons + 8 * BLOCKS(neurons) - 1) / (8 * BLOCKS(neurons)) * 8 / LANES)

enum { PARAMETERS = (INPUTS + 1) * HIDDEN + (HIDDEN + 1) * OUTPUTS };
enum { HIDDEN_BLOCKS = BLOCKS(HIDDEN), HIDDEN_VECTORS = NEEDED(HIDDEN) };
enum { OUTPUT_BLOCKS = BLOCKS(OUTPUTS), OUTPUT_VECTORS = NEEDED(OUTPUTS) };
enum { MOST_VECTORS = HIDDEN_VECTORS > OUTPUT_VECTORS ? HIDDEN_VECTORS : OUTPUT_VECTORS };

double exp(double);
double log(double);
double pow(double, double);

/* A matrix has a row for each input of its layer, and a last one of biases. It is stored by blocks of neurons, which are
   summed together. */
struct parameters {
    vec w1[HIDDEN_BLOCKS * (INPUTS + 1) * HIDDEN_VECTORS], w2[OUTPUT_BLOCKS * (HIDDEN + 1) * OUTPUT_VECTORS];
};

static struct {
    struct parameters p, q;
    /* A transposed copy of w2, for the gradients of the first layer, whose neurons are the lanes. It has a row for
       each output, in reverse order, because the reference sums them in that order, and no biases. */
    vec t2[HIDDEN_BLOCKS * OUTPUTS * HIDDEN_VECTORS];
    vec h[HIDDEN_BLOCKS * HIDDEN_VECTORS], h_gradient[HIDDEN_BLOCKS * HIDDEN_VECTORS];
    vec y[OUTPUT_BLOCKS * OUTPUT_VECTORS], y_gradient[OUTPUT_BLOCKS * OUTPUT_VECTORS];
    double y_reversed[OUTPUTS]; /* y_gradient in reverse order */
    double e[OUTPUTS], a[OUTPUTS], total; /* intermediate values of the loss, for its gradient */
    vec x[(INPUTS + OUTPUTS + LANES - 1) / LANES]; /* inputs, then targets */
    /* Dense: the deferred update of w1 from the previous row. */
    vec before[(INPUTS + OUTPUTS + LANES - 1) / LANES];
    double rate;
    long long is_due;
#if SPARSE
    struct live live; /* the inputs to visit */
#endif
    long long adds; /* whether training adds up gradients; if not, each sample updates at once */
} net;

/* --- the hot loops: over the rows of a matrix, or the rows in a list, for all lanes of a block ------------------ */

#define STEP static __attribute__((noinline))
#define SHAPE int blocks, long long rows, int vectors, int has_biases
#define EACH_BLOCK for (long long b = 0; b < blocks; b++, m += (rows + has_biases) * vectors)
#define EACH_ROW for (long long i = 0, r = 0; i < count && (r = list ? list[i] : i, 1); i++)
#ifdef __clang__ /* which ignores a number above the count */
#define EACH_VECTOR _Pragma("clang loop unroll(full)") for (int v = 0; v < vectors; v++)
#else
#define EACH_VECTOR _Pragma("GCC unroll 28") for (int v = 0; v < vectors; v++)
#endif

/* out = biases + m[0] * x[0] + m[1] * x[1] + ... */
INLINE void sum(vec *out, const vec *m, const double *x, const int *list, long long count, SHAPE)
{
    EACH_BLOCK {
        vec s[MOST_VECTORS];
        EACH_VECTOR s[v] = has_biases ? m[rows * vectors + v] : (vec){0.0};
        EACH_ROW {
            double xr = x[r];
            EACH_VECTOR s[v] += m[r * vectors + v] * xr;
        }
        EACH_VECTOR out[b * vectors + v] = s[v];
    }
}

/* m[r] -= rate * (x[r] * g). A bias is the weight of an input that is 1. A rate of -1 adds the gradients to m. */
INLINE void descend(vec *m, const double *x, const vec *gradient, double rate, const int *list, long long count, SHAPE)
{
    EACH_BLOCK {
        vec g[MOST_VECTORS];
        EACH_VECTOR g[v] = gradient[b * vectors + v];
        EACH_ROW {
            double xr = x[r];
            EACH_VECTOR m[r * vectors + v] -= rate * (xr * g[v]);
        }
        if (has_biases) {
            EACH_VECTOR m[rows * vectors + v] -= rate * g[v];
        }
    }
}

/* The update from the previous row and the sum over the new row, in one pass over the matrix. The weights do not fit in
   a first-level cache, and this loads them once instead of twice. */
INLINE void descend_and_sum(vec *out, vec *m, const double *before, const vec *gradient, double rate, const double *x,
                            SHAPE)
{
    EACH_BLOCK {
        vec s[MOST_VECTORS], g[MOST_VECTORS];
        EACH_VECTOR {
            g[v] = gradient[b * vectors + v];
            s[v] = m[rows * vectors + v] -= rate * g[v];
        }
        vec *row = m;
        for (long long r = 0; r < rows; r++, row += vectors) {
            double old = before[r], xr = x[r];
            EACH_VECTOR s[v] += (row[v] -= rate * (old * g[v])) * xr;
        }
        EACH_VECTOR out[b * vectors + v] = s[v];
    }
}

#define LAYER_1 HIDDEN_BLOCKS, INPUTS, HIDDEN_VECTORS, 1
#define LAYER_2 OUTPUT_BLOCKS, HIDDEN, OUTPUT_VECTORS, 1
#define TRANSPOSED HIDDEN_BLOCKS, OUTPUTS, HIDDEN_VECTORS, 0

#if SPARSE
#define VISITED net.live.at, net.live.count
#define MEASURE t->state.bound = 1.0 + squares((double *)net.p.w1, sizeof net.p.w1 / sizeof(double))
#else
#define VISITED 0, INPUTS
#define MEASURE (void)0
#endif

/* --- the loss: its value, and the gradients of the outputs ------------------------------------------------------ */

#if CROSS_ENTROPY
static double loss(const double *y, const double *target)
{
    double *e = net.e, *a = net.a, peak = y[0], total = 0.0, sum = 0.0;
    for (int i = 1; i < OUTPUTS; i++)
        peak = peak > y[i] ? peak : y[i];
    for (int i = 0; i < OUTPUTS; i++)
        total += e[i] = exp(y[i] - peak);
    double inverse = pow(total, -1.0);
    for (int i = 0; i < OUTPUTS; i++) {
        a[i] = e[i] * inverse + 0.0001;
        sum += target[i] * log(a[i]);
    }
    net.total = total;
    return -sum;
}

static void loss_backward(const double *y, const double *target, double *gradient)
{
    const double *e = net.e, *a = net.a;
    double inverse = pow(net.total, -1.0), slope = -pow(net.total, -2.0);
    double of_total = 0.0, of_peak = 0.0;
    for (int i = OUTPUTS - 1; i >= 0; i--) {
        double share = (1.0 / a[i]) * -target[i];
        gradient[i] = inverse * share;
        of_total += slope * (e[i] * share);
    }
    for (int i = OUTPUTS - 1; i >= 0; i--) {
        gradient[i] = e[i] * (gradient[i] + of_total);
        of_peak -= gradient[i];
    }
    int peak = 0;
    for (int i = 1; i < OUTPUTS; i++)
        peak = y[peak] > y[i] ? peak : i;
    gradient[peak] += of_peak;
}
#else
static double loss(const double *y, const double *target)
{
    double sum = 0.0;
    for (int i = 0; i < OUTPUTS; i++) {
        net.e[i] = y[i] - target[i];
        sum += pow(net.e[i], 2.0);
    }
    return sum;
}

static void loss_backward(const double *y, const double *target, double *gradient)
{
    for (int i = 0; i < OUTPUTS; i++)
        gradient[i] = 2.0 * net.e[i];
}
#endif

/* --- one sample ------------------------------------------------------------------------------------------------- */

STEP double forward_pass(double *y)
{
    const double *x = (double *)net.x;
    if (!SPARSE && net.is_due)
        descend_and_sum(net.h, net.p.w1, (double *)net.before, net.h_gradient, net.rate, x, LAYER_1);
    else
        sum(net.h, net.p.w1, x, VISITED, LAYER_1);
    net.is_due = 0;
    for (int i = 0; i < HIDDEN_BLOCKS * HIDDEN_VECTORS; i++)
        net.h[i] = (vec)(~(net.h[i] < 0.0) & (mask)net.h[i]); /* NaN is not below 0, so it stays NaN */
    sum(net.y, net.p.w2, (double *)net.h, 0, HIDDEN, LAYER_2);
    __builtin_memcpy(y, net.y, OUTPUTS * sizeof(double));
    return loss((double *)net.y, x + INPUTS);
}

/* Gradients of all sums, after a forward pass. The gradients of weights follow from them. */
STEP void backward_pass(void)
{
    const mask ones = (mask)ALL(1.0);
    double *gradient = (double *)net.y_gradient;
    loss_backward((double *)net.y, (double *)net.x + INPUTS, gradient);
    for (int i = 0; i < OUTPUTS; i++)
        net.y_reversed[i] = gradient[OUTPUTS - 1 - i];
    sum(net.h_gradient, net.t2, net.y_reversed, 0, OUTPUTS, TRANSPOSED);
    for (int i = 0; i < HIDDEN_BLOCKS * HIDDEN_VECTORS; i++)
        net.h_gradient[i] *= (vec)((net.h[i] > 0.0) & ones); /* a product, because infinity times 0 is NaN */
}

/* Update the parameters from this sample only. */
STEP void descend_all(double rate)
{
#if SPARSE
    descend(net.p.w1, (double *)net.x, net.h_gradient, rate, VISITED, LAYER_1);
#else
    __builtin_memcpy(net.before, net.x, sizeof net.x);
    net.rate = rate;
    net.is_due = 1;
#endif
    descend(net.p.w2, (double *)net.h, net.y_gradient, rate, 0, HIDDEN, LAYER_2);
    descend(net.t2, net.y_reversed, net.h, rate, 0, OUTPUTS, TRANSPOSED);
}

STEP void add_all(void)
{
    descend(net.q.w1, (double *)net.x, net.h_gradient, -1.0, VISITED, LAYER_1);
    descend(net.q.w2, (double *)net.h, net.y_gradient, -1.0, 0, HIDDEN, LAYER_2);
}

/* --- copies of parameters and gradients between the caller's order and ours ------------------------------------- */

static double *lane(vec *m, long long rows, int vectors, long long row, long long neuron)
{
    long long lanes = vectors * LANES;
    return (double *)m + (neuron / lanes * rows + row) * lanes + neuron % lanes;
}

static double *copy_layer(double *p, int takes, long long neurons, vec *m, long long rows, int vectors)
{
    for (long long i = 0; i < neurons; i++)
        for (long long r = 0; r < rows; r++, p++) {
            double *own = lane(m, rows, vectors, r, i);
            *(takes ? own : p) = *(takes ? p : own);
        }
    return p;
}

STEP void copy(struct parameters *own, double *p, int takes)
{
    if (takes)
        *own = (struct parameters){0};
    p = copy_layer(p, takes, HIDDEN, own->w1, INPUTS + 1, HIDDEN_VECTORS);
    copy_layer(p, takes, OUTPUTS, own->w2, HIDDEN + 1, OUTPUT_VECTORS);
}

STEP void transpose(void)
{
    for (long long i = 0; i < OUTPUTS; i++)
        for (long long j = 0; j < HIDDEN; j++)
            *lane(net.t2, OUTPUTS, HIDDEN_VECTORS, OUTPUTS - 1 - i, j) =
                *lane(net.p.w2, HIDDEN + 1, OUTPUT_VECTORS, j, i);
}

static void begin(const double *p)
{
    copy(&net.p, (double *)p, 1);
    transpose();
    net.is_due = 0;
}

static void update_all(double rate, double batch)
{
    vec *p = (vec *)&net.p, *q = (vec *)&net.q;
    for (unsigned long long i = 0; i < sizeof net.p / sizeof(vec); i++) {
        p[i] -= rate * q[i] / batch;
        q[i] = (vec){0.0};
    }
    transpose();
}

/* --- passes for callers ----------------------------------------------------------------------------------------- */

double forward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict y)
{
    begin(p);
    __builtin_memcpy(net.x, x, (INPUTS + OUTPUTS) * sizeof(double));
#if SPARSE
    list_every_input(&net.live);
#endif
    return forward_pass(y);
}

/* A preceding forward pass over the same x and p has left the intermediate values. */
void backward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict q)
{
    copy(&net.q, q, 1);
    backward_pass();
    add_all();
    copy(&net.q, q, 0);
}

/* --- training --------------------------------------------------------------------------------------------------- */

static void enter(struct training *t)
{
    begin(t->p);
    copy(&net.q, t->q, 1);
    MEASURE;
    net.adds = t->stretch->batch > 1;
    for (long long i = 0; i < PARAMETERS; i++)
        net.adds |= t->q[i] != 0.0; /* the caller has left gradients */
}

static int evaluate(struct training *t)
{
    take_row(t, (double *)net.x, 0);
#if SPARSE
    list_inputs(t, (double *)net.x, &net.live);
#endif
    return record(t, forward_pass(t->y));
}

static int turn(struct training *t)
{
    if (!evaluate(t))
        return 0;
    backward_pass();
#if SPARSE
    check_factors(t, (double *)net.h_gradient, &net.live, t->taken + 1 == t->stretch->batch);
#endif
    if (!net.adds) {
        descend_all(*t->rates++);
    } else {
        add_all();
        if (batch_ends(t, 1)) {
            update_all(*t->rates++, (double)t->stretch->batch);
            MEASURE;
        }
    }
    return 1;
}

static void leave(struct training *t)
{
    if (net.is_due)
        descend(net.p.w1, (double *)net.before, net.h_gradient, net.rate, 0, INPUTS, LAYER_1);
    copy(&net.p, t->p, 0);
    copy(&net.q, t->q, 0);
    __builtin_memcpy(t->x, net.x, (INPUTS + OUTPUTS) * sizeof(double));
}
