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
enum { U = 208 }; /* coefficients, and gradients of values without a place */
double exp(double);
double log(double);
double pow(double, double);

#include "rerolled/emit/vectors.h"

__attribute__((noinline, visibility("hidden"))) void loops_0_to_5(number *restrict w)
{
    number *const x = w + X;
    number *const p = w + P;
    number *const v = w + V;
    /* Loop 0: for i<4: v[i] = p[i] + sum(t<3: p[4 + i + 4*t] * x[t]) */
    {
        const number fixed0 = p[0];
        const number fixed1 = p[1];
        const number fixed2 = p[2];
        const number fixed3 = p[3];
        number sum0 = fixed0;
        number sum1 = fixed1;
        number sum2 = fixed2;
        number sum3 = fixed3;
        for (long long t = 0; t < 3; t++) {
            number *p0 = p + 4 + 4*t;
            number *x1 = x + t;
            const number shared0 = x1[0];
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
        number value0 = where1(v[0] < 0.0, 0.0, v[0]);
        number value1 = where1(v[1] < 0.0, 0.0, v[1]);
        number value2 = where1(v[2] < 0.0, 0.0, v[2]);
        number value3 = where1(v[3] < 0.0, 0.0, v[3]);
        v[8] = value0;
        v[9] = value1;
        v[10] = value2;
        v[11] = value3;
    }
    /* Loop 2: for i<3: v[16 + i] = p[16 + i] + sum(t<4: p[20 + i + 4*t] * v[8 + t]) */
    {
        const number fixed0 = p[16];
        const number fixed1 = p[17];
        const number fixed2 = p[18];
        number sum0 = fixed0;
        number sum1 = fixed1;
        number sum2 = fixed2;
        for (long long t = 0; t < 4; t++) {
            number *p0 = p + 20 + 4*t;
            number *v1 = v + 8 + t;
            const number shared0 = v1[0];
            sum0 += p0[0] * shared0;
            sum1 += p0[1] * shared0;
            sum2 += p0[2] * shared0;
        }
        v[16] = sum0;
        v[17] = sum1;
        v[18] = sum2;
    }
    /* Loop 3 */
    v[20] = where1(v[16] > v[17], v[16], v[17]);
    /* Loop 4 */
    v[21] = where1(v[20] > v[18], v[20], v[18]) * -1.0;
    /* Loop 5: for i<3: v[24 + i] = v[16 + i] + v[21] */
    {
        number value0 = v[16];
        number value1 = v[17];
        number value2 = v[18];
        {
            const number shared0 = v[21];
            value0 += shared0;
            value1 += shared0;
            value2 += shared0;
        }
        v[24] = value0;
        v[25] = value1;
        v[26] = value2;
    }
}

__attribute__((noinline, visibility("hidden"))) void loops_6_to_12(number *restrict w)
{
    number *const x = w + X;
    number *const v = w + V;
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
    /* Loop 9: for i<3: v[40 + i] = v[32 + i] * v[37] + 0.0001 */
    {
        const number shared0 = v[37];
        number value0 = v[32] * shared0;
        number value1 = v[33] * shared0;
        number value2 = v[34] * shared0;
        {
            const number shared0 = 0.0001;
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

__attribute__((noinline, visibility("hidden"))) void loops_13_to_25(number *restrict w)
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
    /* Loop 15: for i<3: u[8 + i] = 1.0 / v[40 + i] */
    {
        number value0 = 1.0 / v[40];
        number value1 = 1.0 / v[41];
        number value2 = 1.0 / v[42];
        u[8] = value0;
        u[9] = value1;
        u[10] = value2;
    }
    /* Loop 16: for i<3: g[40 + i] = u[8 + i] * (x[3 + i] * g[52]) */
    {
        const number shared0 = g[52];
        number value0 = u[8] * (x[3] * shared0);
        number value1 = u[9] * (x[4] * shared0);
        number value2 = u[10] * (x[5] * shared0);
        g[40] = value0;
        g[41] = value1;
        g[42] = value2;
    }
    /* Loop 17 */
    g[36] = u[0] * (v[34] * g[42]) + u[0] * (v[33] * g[41]) + u[0] * (v[32] * g[40]);
    /* Loop 18: for i<3: g[32 + i] = v[37] * g[40 + i] + g[36] */
    {
        const number shared0 = v[37];
        number value0 = shared0 * g[40];
        number value1 = shared0 * g[41];
        number value2 = shared0 * g[42];
        {
            const number shared0 = g[36];
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
        number value0 = v[32] * g[32];
        number value1 = v[33] * g[33];
        number value2 = v[34] * g[34];
        g[24] = value0;
        g[25] = value1;
        g[26] = value2;
    }
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
}

__attribute__((noinline, visibility("hidden"))) void loop_26(number *restrict w)
{
    number *const v = w + V;
    number *const g = w + G;
    /* Loop 26: for i<4: g[i] = (v[8 + i] > 0.0) * g[8 + i] */
    {
        number value0 = (v[8] > 0.0) * g[8];
        number value1 = (v[9] > 0.0) * g[9];
        number value2 = (v[10] > 0.0) * g[10];
        number value3 = (v[11] > 0.0) * g[11];
        g[0] = value0;
        g[1] = value1;
        g[2] = value2;
        g[3] = value3;
    }
}

__attribute__((noinline, visibility("hidden"))) void loops_27_to_30(number *restrict w)
{
    number *const x = w + X;
    number *const v = w + V;
    number *const q = w + Q;
    number *const g = w + G;
    /* Loop 27: for i<4 j<3: q[20 + 4*i + j] += v[8 + i] * g[16 + j] */
    {
        const number fixed0 = g[16];
        const number fixed1 = g[17];
        const number fixed2 = g[18];
        for (long long i = 0; i < 4; i++) {
            number *target = q + 20 + 4*i;
            number value0 = target[0];
            number value1 = target[1];
            number value2 = target[2];
            number *v0 = v + 8 + i;
            const number shared0 = v0[0];
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
        number value0 = q[16];
        number value1 = q[17];
        number value2 = q[18];
        value0 += g[16];
        value1 += g[17];
        value2 += g[18];
        q[16] = value0;
        q[17] = value1;
        q[18] = value2;
    }
    /* Loop 29: for i<3 j<4: q[4 + 4*i + j] += x[i] * g[j] */
    {
        const number fixed0 = g[0];
        const number fixed1 = g[1];
        const number fixed2 = g[2];
        const number fixed3 = g[3];
        for (long long i = 0; i < 3; i++) {
            number *target = q + 4 + 4*i;
            number value0 = target[0];
            number value1 = target[1];
            number value2 = target[2];
            number value3 = target[3];
            number *x0 = x + i;
            const number shared0 = x0[0];
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
        number value0 = q[0];
        number value1 = q[1];
        number value2 = q[2];
        number value3 = q[3];
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

__attribute__((noinline, visibility("hidden"))) void loops_27_to_30_in_place(number *restrict w, number rate)
{
    number *const x = w + X;
    number *const p = w + P;
    number *const v = w + V;
    number *const g = w + G;
    /* Loop 27, in place: for i<4 j<3: p[20 + 4*i + j] -= rate * (v[8 + i] * g[16 + j]) */
    {
        const number fixed0 = g[16];
        const number fixed1 = g[17];
        const number fixed2 = g[18];
        const number fixed3 = rate;
        for (long long i = 0; i < 4; i++) {
            number *target = p + 20 + 4*i;
            number *v0 = v + 8 + i;
            const number shared0 = v0[0];
            number value0 = shared0 * fixed0;
            number value1 = shared0 * fixed1;
            number value2 = shared0 * fixed2;
            target[0] -= fixed3 * value0;
            target[1] -= fixed3 * value1;
            target[2] -= fixed3 * value2;
        }
    }
    /* Loop 28, in place: for i<3: p[16 + i] -= rate * (g[16 + i]) */
    {
        number value0 = g[16];
        number value1 = g[17];
        number value2 = g[18];
        p[16] -= rate * value0;
        p[17] -= rate * value1;
        p[18] -= rate * value2;
    }
    /* Loop 29, in place: for i<3 j<4: p[4 + 4*i + j] -= rate * (x[i] * g[j]) */
    {
        const number fixed0 = g[0];
        const number fixed1 = g[1];
        const number fixed2 = g[2];
        const number fixed3 = g[3];
        const number fixed4 = rate;
        for (long long i = 0; i < 3; i++) {
            number *target = p + 4 + 4*i;
            number *x0 = x + i;
            const number shared0 = x0[0];
            number value0 = shared0 * fixed0;
            number value1 = shared0 * fixed1;
            number value2 = shared0 * fixed2;
            number value3 = shared0 * fixed3;
            target[0] -= fixed4 * value0;
            target[1] -= fixed4 * value1;
            target[2] -= fixed4 * value2;
            target[3] -= fixed4 * value3;
        }
    }
    /* Loop 30, in place: for i<4: p[i] -= rate * (g[i]) */
    {
        number value0 = g[0];
        number value1 = g[1];
        number value2 = g[2];
        number value3 = g[3];
        p[0] -= rate * value0;
        p[1] -= rate * value1;
        p[2] -= rate * value2;
        p[3] -= rate * value3;
    }
}

static void values(number *restrict w)
{
    loops_0_to_5(w);
    loops_6_to_12(w);
}

static void gradients(number *restrict w)
{
    loops_13_to_25(w);
    loop_26(w);
}

static void sinks(number *restrict w)
{
    loops_27_to_30(w);
}

static void sinks_in_place(number *restrict w, number rate)
{
    loops_27_to_30_in_place(w, rate);
}

#include "kernel/kernel.h"

#include "kernel/rows.h"

#include "kernel/set_input.c"

/* State that persists between the turns of a stretch. */
struct state {
    number rate; /* of the current or waiting update */
    int gradients_are_zero; /* set by the first update; after that, each row may be alone */
};

#define HAS_STATE 1

#include "kernel/training.h"

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
    values(w);
    if (!record(t, w[LOSS]))
        return 0;
    gradients(w);
    if (t->stretch->batch == 1 && t->state.gradients_are_zero) {
        /* Each row is a batch, so no gradient needs to be kept. */
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
    give_inputs(w, t->x);
    give_outputs(w, t->y);
    if (t->rates != t->stretch->rates)
        give_parameters(w, t->p);
    if (t->stretch->learns)
        give_gradients(w, t->q);
}

#include "kernel/train.c"
