/* A handwritten MLP of two layers, for one sample at a time, in the reference's order of operations.

   Neurons are the lanes of vectors. A lane adds its terms one after the other, like the scalar program, so no bit
   differs. Lanes beyond the last neuron hold 0.

   x: inputs, then targets   p, q: neuron by neuron, weights before the bias   w: a struct network

   training.h and these macros come before this file:
     INPUTS, HIDDEN, OUTPUTS          sizes of the network
     HIDDEN_BLOCKS, HIDDEN_BLOCK      number of blocks of the hidden layer, and lanes in each
     OUTPUT_BLOCKS, OUTPUT_BLOCK      the same for the output layer
     WORKSPACE                        doubles in w
     CROSS_ENTROPY                    whether the loss is cross-entropy, not squared error
     SPARSE                           whether the first layer skips inputs that are 0 */

#if defined LANES /* set on the command line */
#elif defined __AVX512F__
#define LANES 8
#elif defined __AVX__
#define LANES 4
#else
#define LANES 2
#endif

enum { PARAMETERS = (INPUTS + 1) * HIDDEN + (HIDDEN + 1) * OUTPUTS };
enum { HIDDEN_VECTORS = HIDDEN_BLOCK / LANES, OUTPUT_VECTORS = OUTPUT_BLOCK / LANES };
enum { MOST_VECTORS = HIDDEN_VECTORS > OUTPUT_VECTORS ? HIDDEN_VECTORS : OUTPUT_VECTORS };

typedef double vec __attribute__((vector_size(8 * LANES), may_alias));
typedef long long mask __attribute__((vector_size(8 * LANES), may_alias));
typedef unsigned long long word __attribute__((may_alias));

double exp(double);
double log(double);
double pow(double, double);

/* A matrix has a row for each input of its layer. It is stored by blocks of neurons, which are summed together. */
struct parameters {
    vec w1[HIDDEN_BLOCKS * INPUTS * HIDDEN_VECTORS], b1[HIDDEN_BLOCKS * HIDDEN_VECTORS];
    vec w2[OUTPUT_BLOCKS * HIDDEN * OUTPUT_VECTORS], b2[OUTPUT_BLOCKS * OUTPUT_VECTORS];
};

struct network {
    struct parameters p, q;
    /* A transposed copy of w2, for the gradients of the first layer, whose neurons are the lanes. It has a row for
       each output, in reverse order, because the reference sums them in that order. */
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
    /* Sparse: the inputs to visit, and a bound on all |w1|. */
    long long count, list[INPUTS + 1];
    double largest;
    long long adds; /* whether training adds up gradients; if not, each sample updates at once */
};

typedef char workspace_suffices[sizeof(struct network) + sizeof(vec) <= 8 * WORKSPACE ? 1 : -1];

static struct network *network(double *w)
{
    __UINTPTR_TYPE__ address = (__UINTPTR_TYPE__)w + sizeof(vec) - 1;
    return (struct network *)(address - address % sizeof(vec));
}

/* --- the hot loops: over the rows of a matrix, or the rows in a list, for all lanes of a block ------------------ */

#define INLINE static inline __attribute__((always_inline))
#define STEP static __attribute__((noinline))
#define UNROLL_8 _Pragma("GCC unroll 8")
#define EACH_BLOCK for (long long b = 0; b < blocks; b++, m += rows * vectors)
#define EACH_ROW for (long long i = 0, r = 0; i < count && (r = list ? list[i] : i, 1); i++)
#define EACH_VECTOR _Pragma("GCC unroll 28") for (int v = 0; v < vectors; v++)

/* out = start + m[0] * x[0] + m[1] * x[1] + ... */
INLINE void sum(vec *out, const vec *start, const vec *m, const double *x, const long long *list, long long count,
                int blocks, long long rows, int vectors)
{
    EACH_BLOCK {
        vec s[MOST_VECTORS];
        EACH_VECTOR s[v] = start ? start[b * vectors + v] : (vec){0.0};
        EACH_ROW {
            double xr = x[r];
            EACH_VECTOR s[v] += m[r * vectors + v] * xr;
        }
        EACH_VECTOR out[b * vectors + v] = s[v];
    }
}

/* m[r] -= rate * (x[r] * g) */
INLINE void descend(vec *m, const double *x, const vec *gradient, double rate, const long long *list, long long count,
                    int blocks, long long rows, int vectors)
{
    EACH_BLOCK {
        vec g[MOST_VECTORS];
        EACH_VECTOR g[v] = gradient[b * vectors + v];
        EACH_ROW {
            double xr = x[r];
            EACH_VECTOR m[r * vectors + v] -= rate * (xr * g[v]);
        }
    }
}

#if !SPARSE
/* The update from the previous row and the sum over the new row, in one pass over the matrix. The weights do not fit in
   a first-level cache, and this loads them once instead of twice. */
INLINE void descend_and_sum(vec *out, const vec *start, vec *m, const double *before, const vec *gradient,
                            double rate, const double *x, int blocks, long long rows, int vectors)
{
    EACH_BLOCK {
        vec s[MOST_VECTORS], g[MOST_VECTORS];
        EACH_VECTOR s[v] = start[b * vectors + v], g[v] = gradient[b * vectors + v];
        for (long long r = 0; r < rows; r++) {
            double old = before[r], xr = x[r];
            EACH_VECTOR {
                vec new = m[r * vectors + v] - rate * (old * g[v]);
                m[r * vectors + v] = new;
                s[v] += new * xr;
            }
        }
        EACH_VECTOR out[b * vectors + v] = s[v];
    }
}
#endif

/* m[r] += x[r] * g */
INLINE void add(vec *m, const double *x, const vec *gradient, const long long *list, long long count, int blocks,
                long long rows, int vectors)
{
    EACH_BLOCK {
        vec g[MOST_VECTORS];
        EACH_VECTOR g[v] = gradient[b * vectors + v];
        EACH_ROW {
            double xr = x[r];
            EACH_VECTOR m[r * vectors + v] += xr * g[v];
        }
    }
}

#define FIRST HIDDEN_BLOCKS, INPUTS, HIDDEN_VECTORS
#define SECOND OUTPUT_BLOCKS, HIDDEN, OUTPUT_VECTORS
#define TRANSPOSED HIDDEN_BLOCKS, OUTPUTS, HIDDEN_VECTORS
#define FIRST_BIAS HIDDEN_BLOCKS, 1, HIDDEN_VECTORS
#define SECOND_BIAS OUTPUT_BLOCKS, 1, OUTPUT_VECTORS

static const double one = 1.0; /* a bias is the weight of an input that is 1 */

/* --- the inputs to visit ---------------------------------------------------------------------------------------- */

#if SPARSE
#define VISITED n->list, n->count

/* If an input is 0, then w * 0 is 0 and changes no sum, and rate * (0 * g) is 0 and changes no weight; the sign of zero
   does not count. This holds only if w, g and rate are finite, because infinity times 0 is NaN. So if any of them may
   not be finite, the list holds all inputs.

   g and rate are checked before each update. There are too many weights for that, so `largest` bounds them all. It is
   measured at the start, and each update raises it by at most |rate| * max |x| * max |g|. Rounding errors are far
   smaller than the distance from SAFE to infinity. NaN, as in infinity * 0, is not below SAFE, and persists. */
#define SAFE 1e300

/* The largest magnitude. NaN counts as the largest. Without their sign bits, doubles sort like integers. */
static double magnitude(const vec *x, unsigned long long bytes)
{
    mask most = {0}, bits, is_more;
    for (unsigned long long i = 0; i < bytes / sizeof(vec); i++) {
        bits = (mask)x[i] & 0x7fffffffffffffff;
        is_more = bits > most;
        most = (is_more & bits) | (~is_more & most);
    }
    int top = 0;
    for (int i = 1; i < LANES; i++)
        top = most[i] > most[top] ? i : top;
    return ((vec)most)[top];
}

#define MAGNITUDE(array) magnitude(array, sizeof array)

/* Branch-free, because a branch per input would often be mispredicted. */
static void list_inputs(struct network *n, int all)
{
    long long count = 0;
    UNROLL_8 for (long long i = 0; i < INPUTS; i++) {
        n->list[count] = i;
        count += all | (((const word *)n->x)[i] << 1 != 0);
    }
    n->count = count;
}

static void list_for_sum(struct network *n)
{
    list_inputs(n, !(n->largest < SAFE));
}

/* Keep the list made for the sum, or list all inputs. rate: 0.0 if gradients are only added. */
static void list_for_gradient(struct network *n, double rate)
{
    double steepest = MAGNITUDE(n->h_gradient), speed = rate < 0.0 ? -rate : rate;
    if (!(steepest < SAFE && speed < SAFE))
        list_inputs(n, 1);
    n->largest += speed * (MAGNITUDE(n->x) * steepest); /* x includes the targets, which is harmless */
}
#else
#define VISITED 0, INPUTS
#endif

/* --- the loss: its value, and the gradients of the outputs ------------------------------------------------------ */

#if CROSS_ENTROPY
static double loss(struct network *n, const double *y, const double *target)
{
    double *e = n->e, *a = n->a, peak = y[0], total = 0.0, sum = 0.0;
    for (int i = 1; i < OUTPUTS; i++)
        peak = peak > y[i] ? peak : y[i];
    for (int i = 0; i < OUTPUTS; i++)
        total += e[i] = exp(y[i] + peak * -1.0);
    double inverse = pow(total, -1.0);
    for (int i = 0; i < OUTPUTS; i++) {
        a[i] = e[i] * inverse + 0.0001;
        sum += target[i] * log(a[i]);
    }
    n->total = total;
    return sum * -1.0;
}

static void loss_backward(struct network *n, const double *y, const double *target, double *gradient)
{
    const double *e = n->e, *a = n->a;
    double inverse = pow(n->total, -1.0), slope = -1.0 * pow(n->total, -2.0);
    double of_total = 0.0, of_peak = 0.0;
    for (int i = OUTPUTS - 1; i >= 0; i--) {
        double share = (1.0 / a[i]) * (target[i] * -1.0);
        gradient[i] = inverse * share;
        of_total += slope * (e[i] * share);
    }
    for (int i = OUTPUTS - 1; i >= 0; i--) {
        gradient[i] = e[i] * (gradient[i] + of_total);
        of_peak += -1.0 * gradient[i];
    }
    int peak = 0;
    for (int i = 1; i < OUTPUTS; i++)
        peak = y[peak] > y[i] ? peak : i;
    gradient[peak] += of_peak;
}
#else
static double loss(struct network *n, const double *y, const double *target)
{
    double sum = 0.0;
    for (int i = 0; i < OUTPUTS; i++) {
        n->e[i] = y[i] + target[i] * -1.0;
        sum += pow(n->e[i], 2.0);
    }
    return sum;
}

static void loss_backward(struct network *n, const double *y, const double *target, double *gradient)
{
    (void)y, (void)target;
    for (int i = 0; i < OUTPUTS; i++)
        gradient[i] = 2.0 * pow(n->e[i], 1.0);
}
#endif

/* --- one sample ------------------------------------------------------------------------------------------------- */

STEP double forward_pass(struct network *n)
{
    struct parameters *p = &n->p;
    const double *x = (double *)n->x;
#if SPARSE
    list_for_sum(n);
    sum(n->h, p->b1, p->w1, x, VISITED, FIRST);
#else
    if (n->is_due)
        descend_and_sum(n->h, p->b1, p->w1, (double *)n->before, n->h_gradient, n->rate, x, FIRST);
    else
        sum(n->h, p->b1, p->w1, x, VISITED, FIRST);
    n->is_due = 0;
#endif
    for (int i = 0; i < HIDDEN_BLOCKS * HIDDEN_VECTORS; i++)
        n->h[i] = (vec)(~(n->h[i] < 0.0) & (mask)n->h[i]); /* NaN is not below 0, so it stays NaN */
    sum(n->y, p->b2, p->w2, (double *)n->h, 0, HIDDEN, SECOND);
    return loss(n, (double *)n->y, x + INPUTS);
}

/* Gradients of all sums, after a forward pass. The gradients of weights follow from them. */
STEP void backward_pass(struct network *n)
{
    const mask ones = (mask)((vec){0.0} + 1.0);
    double *gradient = (double *)n->y_gradient;
    loss_backward(n, (double *)n->y, (double *)n->x + INPUTS, gradient);
    for (int i = 0; i < OUTPUTS; i++)
        n->y_reversed[i] = gradient[OUTPUTS - 1 - i];
    sum(n->h_gradient, 0, n->t2, n->y_reversed, 0, OUTPUTS, TRANSPOSED);
    for (int i = 0; i < HIDDEN_BLOCKS * HIDDEN_VECTORS; i++)
        n->h_gradient[i] *= (vec)((n->h[i] > 0.0) & ones); /* a product, because infinity times 0 is NaN */
}

/* Update the parameters from this sample only. */
STEP void descend_all(struct network *n, double rate)
{
    struct parameters *p = &n->p;
    const double *h = (double *)n->h;
#if SPARSE
    list_for_gradient(n, rate);
    descend(p->w1, (double *)n->x, n->h_gradient, rate, VISITED, FIRST);
#else
    for (unsigned long long i = 0; i < sizeof n->x / sizeof(vec); i++)
        n->before[i] = n->x[i];
    n->rate = rate;
    n->is_due = 1;
#endif
    descend(p->b1, &one, n->h_gradient, rate, 0, 1, FIRST_BIAS);
    descend(p->w2, h, n->y_gradient, rate, 0, HIDDEN, SECOND);
    descend(n->t2, n->y_reversed, n->h, rate, 0, OUTPUTS, TRANSPOSED);
    descend(p->b2, &one, n->y_gradient, rate, 0, 1, SECOND_BIAS);
}

STEP void add_all(struct network *n)
{
#if SPARSE
    list_for_gradient(n, 0.0);
#endif
    add(n->q.w1, (double *)n->x, n->h_gradient, VISITED, FIRST);
    add(n->q.b1, &one, n->h_gradient, 0, 1, FIRST_BIAS);
    add(n->q.w2, (double *)n->h, n->y_gradient, 0, HIDDEN, SECOND);
    add(n->q.b2, &one, n->y_gradient, 0, 1, SECOND_BIAS);
}

/* --- copies of parameters and gradients between the caller's order and ours ------------------------------------- */

static double *lane(vec *m, long long rows, int vectors, long long row, long long neuron)
{
    long long lanes = vectors * LANES;
    return (double *)m + (neuron / lanes * rows + row) * lanes + neuron % lanes;
}

INLINE double *copy_layer(double *p, int takes, long long neurons, vec *m, vec *bias, int blocks, long long rows,
                          int vectors)
{
    (void)blocks;
    for (long long i = 0; i < neurons; i++)
        for (long long r = 0; r <= rows; r++, p++) {
            double *own = r < rows ? lane(m, rows, vectors, r, i) : lane(bias, 1, vectors, 0, i);
            *(takes ? own : p) = *(takes ? p : own);
        }
    return p;
}

STEP void give(struct parameters *own, double *p)
{
    p = copy_layer(p, 0, HIDDEN, own->w1, own->b1, FIRST);
    copy_layer(p, 0, OUTPUTS, own->w2, own->b2, SECOND);
}

STEP void take(struct parameters *own, const double *p)
{
    *own = (struct parameters){0};
    double *rest = copy_layer((double *)p, 1, HIDDEN, own->w1, own->b1, FIRST);
    copy_layer(rest, 1, OUTPUTS, own->w2, own->b2, SECOND);
}

/* Recompute the data that depends on the parameters. */
STEP void derive(struct network *n)
{
    for (long long i = 0; i < OUTPUTS; i++)
        for (long long j = 0; j < HIDDEN; j++)
            *lane(n->t2, OUTPUTS, HIDDEN_VECTORS, OUTPUTS - 1 - i, j) = *lane(n->p.w2, HIDDEN, OUTPUT_VECTORS, j, i);
#if SPARSE
    n->largest = MAGNITUDE(n->p.w1);
#endif
}

static void begin(struct network *n, const double *p)
{
    take(&n->p, p);
    derive(n);
    n->is_due = 0;
}

static void update_all(struct network *n, double rate, double batch)
{
    vec *p = (vec *)&n->p, *q = (vec *)&n->q;
    for (unsigned long long i = 0; i < sizeof n->p / sizeof(vec); i++) {
        p[i] -= rate * q[i] / batch;
        q[i] = (vec){0.0};
    }
    derive(n);
}

/* --- passes for callers ----------------------------------------------------------------------------------------- */

double forward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict y)
{
    struct network *n = network(w);
    begin(n, p);
    for (int i = 0; i < INPUTS + OUTPUTS; i++)
        ((double *)n->x)[i] = x[i];
    double result = forward_pass(n);
    for (int i = 0; i < OUTPUTS; i++)
        y[i] = ((double *)n->y)[i];
    return result;
}

/* A preceding forward pass over the same x and p has left the intermediate values in w. */
void backward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict q)
{
    (void)x, (void)p;
    struct network *n = network(w);
    take(&n->q, q);
    backward_pass(n);
    add_all(n);
    give(&n->q, q);
}

/* --- training --------------------------------------------------------------------------------------------------- */

static void enter(struct training *t)
{
    struct network *n = network(t->w);
    begin(n, t->p);
    take(&n->q, t->q);
    n->adds = t->stretch->batch > 1;
    for (long long i = 0; i < PARAMETERS; i++)
        n->adds |= t->q[i] != 0.0; /* the caller has left gradients */
}

static int turn(struct training *t)
{
    struct network *n = network(t->w);
    take_row(t, (double *)n->x, 0);
    if (!record(t, forward_pass(n)))
        return 0;
    backward_pass(n);
    if (!n->adds) {
        descend_all(n, *t->rates++);
    } else {
        add_all(n);
        if (batch_ends(t, 1))
            update_all(n, *t->rates++, (double)t->stretch->batch);
    }
    return 1;
}

static int evaluate(struct training *t)
{
    struct network *n = network(t->w);
    take_row(t, (double *)n->x, 0);
    double loss = forward_pass(n);
    for (int i = 0; i < OUTPUTS; i++)
        t->y[i] = ((double *)n->y)[i];
    return record(t, loss);
}

static void leave(struct training *t)
{
    struct network *n = network(t->w);
    if (n->is_due)
        descend(n->p.w1, (double *)n->before, n->h_gradient, n->rate, 0, INPUTS, FIRST);
    give(&n->p, t->p);
    give(&n->q, t->q);
    for (int i = 0; i < INPUTS + OUTPUTS; i++)
        t->x[i] = ((double *)n->x)[i];
    for (int i = 0; i < OUTPUTS; i++)
        t->y[i] = ((double *)n->y)[i];
}
