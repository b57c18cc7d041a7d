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
enum { U = 208 }; /* coefficients, and gradients of values without a place */
enum { BEFORE = 232 }; /* inputs of the row whose update waits */
double exp(double);
double log(double);
double pow(double, double);

#include "rerolled/emit/vectors.h"

#include "rerolled/emit/powers.h"

__attribute__((noinline, visibility("hidden"))) void loop_0(number *restrict w)
{
    number *const x = w + X;
    number *const p = w + P;
    number *const v = w + V;
    /* Loop 0: for i<4: v[i] = p[i] + sum(t<3: p[4 + i + 4*t] * x[t]) */
    {
        const v4 fixed0 = AT4(p);
        v4 sum0 = fixed0;
        for (long long t = 0; t < 3; t++) {
            number *p0 = p + 4 + 4*t;
            number *x1 = x + t;
            sum0 += AT4(p0) * all4(x1[0]);
        }
        AT4(v) = sum0;
    }
}

__attribute__((noinline, visibility("hidden"))) void loops_1_to_12(number *restrict w)
{
    number *const x = w + X;
    number *const p = w + P;
    number *const v = w + V;
    /* Loop 1 */
    AT4(v + 8) = where4(AT4(v) < all4(0.0), all4(0.0), AT4(v));
    /* Loop 2: for i<3: v[16 + i] = p[16 + i] + sum(t<4: p[20 + i + 4*t] * v[8 + t]) */
    {
        const v4 fixed0 = AT4(p + 16);
        v4 sum0 = fixed0;
        for (long long t = 0; t < 4; t++) {
            number *p0 = p + 20 + 4*t;
            number *v1 = v + 8 + t;
            sum0 += AT4(p0) * all4(v1[0]);
        }
        AT4(v + 16) = sum0;
    }
    /* Loop 3 */
    v[20] = where1(v[16] > v[17], v[16], v[17]);
    /* Loop 4 */
    v[21] = where1(v[20] > v[18], v[20], v[18]) * -1.0;
    /* Loop 5 */
    AT4(v + 24) = AT4(v + 16) + all4(v[21]);
    /* Loop 6: for i<3: v[32 + i] = exp(v[24 + i]) */
    for (long long i = 0; i < 3; i++) {
        number *target = v + 32 + i;
        number *v0 = v + 24 + i;
        number value0 = exp(v0[0]);
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
        number *target = v + 48 + i;
        number *v0 = v + 40 + i;
        number value0 = log(v0[0]);
        target[0] = value0;
    }
    /* Loop 11 */
    v[52] = x[3] * v[48] + x[4] * v[49] + x[5] * v[50];
    /* Loop 12 */
    v[53] = v[52] * -1.0;
}

__attribute__((noinline, visibility("hidden"))) void loops_13_to_26(number *restrict w)
{
    number *const x = w + X;
    number *const p = w + P;
    number *const v = w + V;
    number *const g = w + G;
    number *const u = w + U;
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
    g[18] = g[26] + where1(v[20] > v[18], 0.0, u[12]);
    /* Loop 22 */
    g[20] = where1(v[20] > v[18], u[12], 0.0);
    /* Loop 23 */
    g[17] = g[25] + where1(v[16] > v[17], 0.0, g[20]);
    /* Loop 24 */
    g[16] = g[24] + where1(v[16] > v[17], g[20], 0.0);
    /* Loop 25: for i<4: g[8 + i] = sum(t<3: p[22 + 4*i - t] * g[18 - t]) */
    {
        number sum0 = 0.0;
        number sum1 = 0.0;
        number sum2 = 0.0;
        number sum3 = 0.0;
        for (long long t = 0; t < 3; t++) {
            number *p0 = p + 22 - t;
            number *g1 = g + 18 - t;
            const number shared0 = g1[0];
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

__attribute__((noinline, visibility("hidden"))) void loops_27_to_30(number *restrict w)
{
    number *const x = w + X;
    number *const v = w + V;
    number *const q = w + Q;
    number *const g = w + G;
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
    /* Loop 29: for i<3 j<4: q[4 + 4*i + j] += x[i] * g[j] */
    {
        v4 value0 = AT4(q + 4);
        v4 value1 = AT4(q + 8);
        v4 value2 = AT4(q + 12);
        const v4 shared0 = AT4(g);
        value0 += all4(x[0]) * shared0;
        value1 += all4(x[1]) * shared0;
        value2 += all4(x[2]) * shared0;
        AT4(q + 4) = value0;
        AT4(q + 8) = value1;
        AT4(q + 12) = value2;
    }
    /* Loop 30 */
    AT4(q) = AT4(q) + AT4(g);
}

__attribute__((noinline, visibility("hidden"))) void loops_27_to_28_in_place_and_loop_30_in_place(number *restrict w,
                                                                                                  number rate)
{
    number *const p = w + P;
    number *const v = w + V;
    number *const g = w + G;
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

__attribute__((noinline, visibility("hidden"))) void loop_0_after_its_update_keeping_the_inputs(number *restrict w,
                                                                                                number rate)
{
    number *const x = w + X;
    number *const p = w + P;
    number *const v = w + V;
    number *const g = w + G;
    number *const before = w + BEFORE;
    /* Loop 0, after its update keeping the inputs: for i<4: v[i] = p[i] + sum(t<3: p[4 + i + 4*t] * x[t]) */
    {
        const v4 fixed0 = AT4(p);
        const v4 fixed1 = AT4(g);
        const v4 fixed2 = all4(rate);
        v4 sum0 = fixed0;
        for (long long t = 0; t < 3; t++) {
            number *p0 = p + 4 + 4*t;
            number *x1 = x + t;
            number *kept = before + t;
            const v4 old = all4(kept[0]);
            const v4 new0 = AT4(p0) - fixed2 * (old * fixed1);
            AT4(p0) = new0;
            kept[0] = x1[0];
            sum0 += new0 * all4(x1[0]);
        }
        AT4(v) = sum0;
    }
}

__attribute__((noinline, visibility("hidden"))) void loop_29_in_place_of_the_row_before(number *restrict w, number rate)
{
    number *const p = w + P;
    number *const g = w + G;
    number *const before = w + BEFORE;
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

static void values(number *restrict w)
{
    loop_0(w);
    loops_1_to_12(w);
}

static void gradients(number *restrict w)
{
    loops_13_to_26(w);
}

static void sinks(number *restrict w)
{
    loops_27_to_30(w);
}

static void sinks_in_place(number *restrict w, number rate)
{
    loops_27_to_28_in_place_and_loop_30_in_place(w, rate);
}

static void values_after_the_update(number *restrict w, number rate)
{
    loop_0_after_its_update_keeping_the_inputs(w, rate);
    loops_1_to_12(w);
}

static void settle(number *restrict w, number rate)
{
    loop_29_in_place_of_the_row_before(w, rate);
}

#include "kernel/kernel.h"

#include "kernel/rows.h"

#include "kernel/set_input.c"

/* State that persists between the turns of a stretch. */
struct state {
    number rate; /* of the current or waiting update */
    int gradients_are_zero; /* set by the first update; after that, each row may be alone */
    int due; /* whether an update waits for the next row */
    int kept; /* whether this row's inputs are already kept for that update */
};

#define HAS_STATE 1

#include "kernel/training.h"

void *memcpy(void *restrict to, const void *restrict from, __SIZE_TYPE__ bytes);
enum { ROOM = 40 };
enum { LOSS = V + 53 };

#include "rerolled/emit/workspace.h"

#include "rerolled/emit/updates.h"

static __attribute__((noinline)) void move(number *restrict w, double *restrict theirs, int out)
{
    move_nest(w + P + 0, theirs + 0, out, 4, 4, 4, 1, 1, 4);
    move_nest(w + P + 16, theirs + 16, out, 5, 3, 4, 1, 1, 5);
}

static void give_outputs(const number *restrict w, double *restrict y)
{
    y[0] = w[V + 16];
    y[1] = w[V + 17];
    y[2] = w[V + 18];
}

double forward(const double *restrict x, const double *restrict p, double *work, double *restrict y)
{
    number *const w = aligned(work);
    take_inputs(w, x);
    take_parameters(w, p);
    values(w);
    give_outputs(w, y);
    return w[LOSS];
}

void backward(const double *restrict x, const double *restrict p, double *work, double *restrict q)
{
    (void)x, (void)p;
    number *const w = aligned(work);
    take_gradients(w, q);
    gradients(w);
    sinks(w);
    give_gradients(w, q);
}

static void enter(struct training *t)
{
    t->w = aligned(t->w);
    number *const w = t->w;
    take_parameters(w, t->p);
    take_gradients(w, t->q);
}

static int turn(struct training *t)
{
    number *const w = t->w;
    take_row(t, w, 0);
    if (t->state.due) {
        values_after_the_update(w, t->state.rate);
        t->state.due = 0;
        t->state.kept = 1;
    } else {
        values(w);
        t->state.kept = 0;
    }
    if (!record(t, w[LOSS]))
        return 0;
    gradients(w);
    if (t->stretch->batch == 1 && t->state.gradients_are_zero) {
        /* Each row is a batch, so no gradient needs to be kept. */
        t->state.rate = *t->rates++;
        sinks_in_place(w, t->state.rate);
        if (!t->state.kept)
            memcpy(w + BEFORE, w + X, 3 * sizeof(number));
        t->state.due = 1;
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

static int evaluate(struct training *t)
{
    number *const w = t->w;
    take_row(t, w, 0);
    values(w);
    give_outputs(w, t->y);
    if (!record(t, w[LOSS]))
        return 0;
    return 1;
}

static void leave(struct training *t)
{
    number *const w = t->w;
    if (t->state.due)
        settle(w, t->state.rate);
    give_inputs(w, t->x);
    give_outputs(w, t->y);
    if (t->rates != t->stretch->rates)
        give_parameters(w, t->p);
    if (t->stretch->learns)
        give_gradients(w, t->q);
}

#include "kernel/train.c"
