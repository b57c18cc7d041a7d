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
enum { LIVE = 232 }; /* the list of inputs that are not skipped */
enum { BEFORE = 240 }; /* inputs of the row whose update waits */
enum { ROWS = 248 }; /* inputs of rows taken together */
enum { SUMS = 264 }; /* first sums of rows taken together */
enum { FACTORS = 280 }; /* factors of rows taken together */
enum { LISTS = 296 }; /* the lists of inputs that are not skipped, for each of these rows */
enum { TURNED = 304 }; /* for each input, the rows that do not skip it */
double exp(double);
double log(double);
double pow(double, double);

#include "rerolled/emit/vectors.h"

#define FIRST 0
#define LISTED 3
#define ROWS_TOGETHER 2

#include "rerolled/emit/live.h"

__attribute__((noinline, visibility("hidden"))) void loop_0_over_nonzero_inputs(number *restrict w,
                                                                                const struct live *live)
{
    number *const x = w + X;
    number *const p = w + P;
    number *const v = w + V;
    /* Loop 0, over nonzero inputs: for i<4: v[i] = p[i] + sum(t<3: p[4 + i + 4*t] * x[t]) */
    {
        const v4 fixed0 = AT4(p);
        v4 sum0 = fixed0;
        for (long long n = 0; n < live->count; n++) {
            const long long t = live->at[n];
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
    v[20] = (v[16] > v[17] ? v[16] : v[17]);
    /* Loop 4 */
    v[21] = (v[20] > v[18] ? v[20] : v[18]) * -1.0;
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
    g[18] = g[26] + (v[20] > v[18] ? 0.0 : u[12]);
    /* Loop 22 */
    g[20] = (v[20] > v[18] ? u[12] : 0.0);
    /* Loop 23 */
    g[17] = g[25] + (v[16] > v[17] ? 0.0 : g[20]);
    /* Loop 24 */
    g[16] = g[24] + (v[16] > v[17] ? g[20] : 0.0);
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

__attribute__((noinline, visibility("hidden"))) void loops_27_to_28(number *restrict w)
{
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
}

__attribute__((noinline, visibility("hidden"))) void loop_29_over_nonzero_inputs(number *restrict w,
                                                                                 const struct live *live)
{
    number *const x = w + X;
    number *const q = w + Q;
    number *const g = w + G;
    /* Loop 29, over nonzero inputs: for i<3 j<4: q[4 + 4*i + j] += x[i] * g[j] */
    {
        const v4 fixed0 = AT4(g);
        for (long long n = 0; n < live->count; n++) {
            const long long i = live->at[n];
            number *target = q + 4 + 4*i;
            v4 value0 = AT4(target);
            number *x0 = x + i;
            value0 += all4(x0[0]) * fixed0;
            AT4(target) = value0;
        }
    }
}

__attribute__((noinline, visibility("hidden"))) void loop_30(number *restrict w)
{
    number *const q = w + Q;
    number *const g = w + G;
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

__attribute__((noinline, visibility("hidden"))) void loop_29_in_place_over_nonzero_inputs(number *restrict w,
                                                                                          const struct live *live,
                                                                                          number rate)
{
    number *const x = w + X;
    number *const p = w + P;
    number *const g = w + G;
    /* Loop 29, in place over nonzero inputs: for i<3 j<4: p[4 + 4*i + j] -= rate * (x[i] * g[j]) */
    {
        const v4 fixed0 = AT4(g);
        const v4 fixed1 = all4(rate);
        for (long long n = 0; n < live->count; n++) {
            const long long i = live->at[n];
            number *target = p + 4 + 4*i;
            number *x0 = x + i;
            v4 value0 = all4(x0[0]) * fixed0;
            AT4(target) -= fixed1 * value0;
        }
    }
}

__attribute__((noinline, visibility("hidden"))) void loop_0_for_up_to_2_rows(number *restrict w, long long count)
{
    number *const p = w + P;
    number *const rows = w + ROWS;
    number *const sums = w + SUMS;
    /* Loop 0, for up to 2 rows: for i<2 j<4: sums[8*i + j] = p[j] + sum(t<3: p[4 + j + 4*t] * rows[8*i + t]) */
    {
        const v4 fixed0 = AT4(p);
        for (long long i = 0; i < count - count % 8; i += 8) {
            number *target = sums + 8*i;
            v4 sum0 = fixed0;
            v4 sum1 = fixed0;
            v4 sum2 = fixed0;
            v4 sum3 = fixed0;
            v4 sum4 = fixed0;
            v4 sum5 = fixed0;
            v4 sum6 = fixed0;
            v4 sum7 = fixed0;
            for (long long t = 0; t < 3; t++) {
                number *p0 = p + 4 + 4*t;
                number *rows1 = rows + 8*i + t;
                const v4 shared0 = AT4(p0);
                sum0 += shared0 * all4(rows1[0]);
                sum1 += shared0 * all4(rows1[8]);
                sum2 += shared0 * all4(rows1[16]);
                sum3 += shared0 * all4(rows1[24]);
                sum4 += shared0 * all4(rows1[32]);
                sum5 += shared0 * all4(rows1[40]);
                sum6 += shared0 * all4(rows1[48]);
                sum7 += shared0 * all4(rows1[56]);
            }
            AT4(target) = sum0;
            AT4(target + 8) = sum1;
            AT4(target + 16) = sum2;
            AT4(target + 24) = sum3;
            AT4(target + 32) = sum4;
            AT4(target + 40) = sum5;
            AT4(target + 48) = sum6;
            AT4(target + 56) = sum7;
        }
        for (long long n = 0; n < count % 8; n++) {
            const long long i = count - count % 8 + n;
            number *target = sums + 8*i;
            v4 sum0 = fixed0;
            for (long long t = 0; t < 3; t++) {
                number *p0 = p + 4 + 4*t;
                number *rows1 = rows + 8*i + t;
                sum0 += AT4(p0) * all4(rows1[0]);
            }
            AT4(target) = sum0;
        }
    }
}

__attribute__((noinline, visibility("hidden"))) void loop_29_for_up_to_2_rows(number *restrict w, long long count)
{
    number *const q = w + Q;
    number *const rows = w + ROWS;
    number *const factors = w + FACTORS;
    /* Loop 29, for up to 2 rows: for i<3 j<4: q[4 + 4*i + j] += sum(t<2: rows[i + 8*t] * factors[j + 8*t]) */
    {
        for (long long n = 0; n < 3; n++) {
            const long long i = 0 + n;
            number *target = q + 4 + 4*i;
            v4 sum0 = AT4(target);
            for (long long t = 0; t < count; t++) {
                number *rows0 = rows + i + 8*t;
                number *factors1 = factors + 8*t;
                sum0 += all4(rows0[0]) * AT4(factors1);
            }
            AT4(target) = sum0;
        }
    }
}

__attribute__((noinline, visibility("hidden"))) void loop_0_over_nonzero_inputs_for_up_to_2_rows(number *restrict w,
                                                                                                 const struct live *lists,
                                                                                                 long long count)
{
    number *const p = w + P;
    number *const rows = w + ROWS;
    number *const sums = w + SUMS;
    /* Loop 0, over nonzero inputs for up to 2 rows: for i<2 j<4: sums[8*i + j] = p[j] + sum(t<3: p[4 + j + 4*t] *
       rows[8*i + t]) */
    {
        const v4 fixed0 = AT4(p);
        for (long long i = 0; i < count; i++) {
            number *target = sums + 8*i;
            v4 sum0 = fixed0;
            for (long long n = 0; n < lists[i].count; n++) {
                const long long t = lists[i].at[n];
                number *p0 = p + 4 + 4*t;
                number *rows1 = rows + 8*i + t;
                sum0 += AT4(p0) * all4(rows1[0]);
            }
            AT4(target) = sum0;
        }
    }
}

__attribute__((noinline, visibility("hidden"))) void loop_29_over_nonzero_inputs_for_up_to_2_rows(number *restrict w,
                                                                                                  const struct turned *turned)
{
    number *const q = w + Q;
    number *const rows = w + ROWS;
    number *const factors = w + FACTORS;
    /* Loop 29, over nonzero inputs for up to 2 rows: for i<3 j<4: q[4 + 4*i + j] += sum(t<2: rows[i + 8*t] * factors[j +
       8*t]) */
    {
        for (long long i = 0; i < 3; i++) {
            number *target = q + 4 + 4*i;
            v4 sum0 = AT4(target);
            for (long long n = 0; n < turned[i].count; n++) {
                const long long t = turned[i].at[n];
                number *rows0 = rows + i + 8*t;
                number *factors1 = factors + 8*t;
                sum0 += all4(rows0[0]) * AT4(factors1);
            }
            AT4(target) = sum0;
        }
    }
}

static void values(number *restrict w, const struct live *live)
{
    loop_0_over_nonzero_inputs(w, live);
    loops_1_to_12(w);
}

static void gradients(number *restrict w)
{
    loops_13_to_26(w);
}

static void sinks(number *restrict w, const struct live *live)
{
    loops_27_to_28(w);
    loop_29_over_nonzero_inputs(w, live);
    loop_30(w);
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

static void sink_29_in_place(number *restrict w, const struct live *live, number rate)
{
    loop_29_in_place_over_nonzero_inputs(w, live, rate);
}

static void values_of_2_rows(number *restrict w, long long count)
{
    loop_0_for_up_to_2_rows(w, count);
}

static void values_but_loop_0(number *restrict w)
{
    loops_1_to_12(w);
}

static void sinks_but_loop_29(number *restrict w)
{
    loops_27_to_28(w);
    loop_30(w);
}

static void sinks_of_2_rows(number *restrict w, long long count)
{
    loop_29_for_up_to_2_rows(w, count);
}

static void live_values_of_2_rows(number *restrict w, const struct live *lists, long long count)
{
    loop_0_over_nonzero_inputs_for_up_to_2_rows(w, lists, count);
}

static void live_sinks_of_2_rows(number *restrict w, const struct turned *turned)
{
    loop_29_over_nonzero_inputs_for_up_to_2_rows(w, turned);
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
    double bound; /* on the magnitude of weights whose inputs may be skipped */
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

#include "rerolled/emit/zeros.h"

static double squares_of_weights(const number *restrict w)
{
    return squares(w + P + 4, 12);
}

static double squares_of_factors(const number *restrict w)
{
    return squares(w + G + 0, 4);
}

double forward(const double *restrict x, const double *restrict p, double *work, double *restrict y)
{
    number *const w = aligned(work);
    struct live *const live = (struct live *)(w + LIVE);
    list_every_input(live);
    take_inputs(w, x);
    take_parameters(w, p);
    values(w, live);
    give_outputs(w, y);
    return w[LOSS];
}

void backward(const double *restrict x, const double *restrict p, double *work, double *restrict q)
{
    (void)x, (void)p;
    number *const w = aligned(work);
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
    number *const w = t->w;
    struct live *const live = (struct live *)(w + LIVE);
    take_parameters(w, t->p);
    take_gradients(w, t->q);
    t->state.bound = bound_of_weights(w);
    list_every_input(live);
}

static int turn(struct training *t)
{
    number *const w = t->w;
    struct live *const live = (struct live *)(w + LIVE);
    struct live *const lists = (struct live *)(w + LISTS);
    struct turned *const turned = (struct turned *)(w + TURNED);
    if (t->stretch->batch >= 2) {
        /* Rows of one batch share each load of the first layer's weights. */
        long long count = rows_to_take(t, 2);
        for (long long row = 0; row < count; row++)
            take_row(t, w + ROWS + 8 * row, row);
        if (!(t->state.bound < LIMIT)) {
            /* Zeros are skipped only while all weights are known to be finite. */
            t->state.bound = bound_of_weights(w);
        }
        list_rows(w + ROWS, 8, lists, count, t->state.bound < LIMIT);
        if (all_listed(lists, count))
            values_of_2_rows(w, count);
        else
            live_values_of_2_rows(w, lists, count);
        for (long long row = 0; row < count; row++) {
            memcpy(w + X + 3, w + ROWS + 3 + 8 * row, 3 * sizeof(number));
            memcpy(w + V, w + SUMS + 8 * row, 4 * sizeof(number));
            values_but_loop_0(w);
            if (!record(t, w[LOSS])) {
                count = row;
                if (all_listed(lists, count)) {
                    sinks_of_2_rows(w, count);
                } else {
                    turn_lists(lists, turned, count);
                    live_sinks_of_2_rows(w, turned);
                }
                memcpy(w + X, w + ROWS + 8 * row, 6 * sizeof(number));
                return 0;
            }
            gradients(w);
            check_factors(t, w + ROWS + 8 * row, lists + row, t->taken + count == t->stretch->batch);
            sinks_but_loop_29(w);
            memcpy(w + FACTORS + 8 * row, w + G, 4 * sizeof(number));
        }
        if (all_listed(lists, count)) {
            sinks_of_2_rows(w, count);
        } else {
            turn_lists(lists, turned, count);
            live_sinks_of_2_rows(w, turned);
        }
        memcpy(w + X, w + ROWS + 8 * (count - 1), 6 * sizeof(number));
        if (batch_ends(t, count)) {
            t->state.rate = *t->rates++;
            update_all(w, t->state.rate, (double)t->stretch->batch);
            t->state.gradients_are_zero = 1;
            t->state.bound = bound_of_weights(w);
        }
        return 1;
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
    check_factors(t, w, live, t->taken == t->stretch->batch - 1);
    if (t->stretch->batch == 1 && t->state.gradients_are_zero) {
        /* Each row is a batch, so no gradient needs to be kept. */
        t->state.rate = *t->rates++;
        sinks_in_place(w, t->state.rate);
        if (live->count == LISTED) {
            if (!t->state.kept)
                memcpy(w + BEFORE, w + X, 3 * sizeof(number));
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

static int evaluate(struct training *t)
{
    number *const w = t->w;
    struct live *const live = (struct live *)(w + LIVE);
    take_row(t, w, 0);
    if (!(t->state.bound < LIMIT)) {
        /* Zeros are skipped only while all weights are known to be finite. */
        t->state.bound = bound_of_weights(w);
    }
    list_inputs(w, live, t->state.bound < LIMIT);
    values(w, live);
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
