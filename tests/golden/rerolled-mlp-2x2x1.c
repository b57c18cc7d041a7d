/* A Value graph as recovered loops: inputs 3, parameters 9, outputs 1. The workspace w holds them in the loops' order,
   in areas. */

#define INPUTS 3
#define PARAMETERS 9
#define LANES 4
enum { K = 0 }; /* numbers */
enum { P = 8 }; /* parameters */
enum { Q = 24 }; /* gradients of parameters */
enum { X = 40 }; /* inputs */
enum { V = 48 }; /* values */
enum { G = 56 }; /* gradients of values */
enum { U = 64 }; /* coefficients, and gradients of values without a place */
double pow(double, double);

#include "rerolled/emit/vectors.h"

#include "rerolled/emit/powers.h"

__attribute__((noinline, visibility("hidden"))) void values(number *restrict w)
{
    number *const p = w + P;
    number *const x = w + X;
    number *const v = w + V;
    /* Loop 0: for i<2: v[i] = p[i] + sum(t<2: p[2 + i + 2*t] * x[t]) */
    {
        const v2 fixed0 = AT2(p);
        v2 sum0 = fixed0;
        for (long long t = 0; t < 2; t++) {
            number *p0 = p + 2 + 2*t;
            number *x1 = x + t;
            sum0 += AT2(p0) * all2(x1[0]);
        }
        AT2(v) = sum0;
    }
    /* Loop 1 */
    AT2(v + 2) = where2(AT2(v) < all2(0.0), all2(0.0), AT2(v));
    /* Loop 2 */
    v[4] = p[8] + p[9] * v[2] + p[10] * v[3];
    /* Loop 3 */
    v[5] = v[4] + x[2] * -1.0;
    /* Loop 4 */
    v[6] = pow(v[5], 2.0);
}

__attribute__((noinline, visibility("hidden"))) void gradients(number *restrict w)
{
    number *const p = w + P;
    number *const v = w + V;
    number *const g = w + G;
    number *const u = w + U;
    /* Loop 5 */
    u[0] = 2.0 * pow(v[5], 1.0);
    /* Loop 6 */
    g[5] = u[0] * 1.0;
    /* Loop 7 */
    AT2(g) = truth2(AT2(v + 2) > all2(0.0)) * (AT2(p + 9) * all2(g[5]));
}

__attribute__((noinline, visibility("hidden"))) void sinks(number *restrict w)
{
    number *const q = w + Q;
    number *const x = w + X;
    number *const v = w + V;
    number *const g = w + G;
    /* Loop 8: for i<2 j<2: q[2 + 2*i + j] += x[i] * g[j] */
    {
        v2 value0 = AT2(q + 2);
        v2 value1 = AT2(q + 4);
        const v2 shared0 = AT2(g);
        value0 += all2(x[0]) * shared0;
        value1 += all2(x[1]) * shared0;
        AT2(q + 2) = value0;
        AT2(q + 4) = value1;
    }
    /* Loop 9 */
    AT2(q) = AT2(q) + AT2(g);
    /* Loop 10 */
    AT2(q + 9) = AT2(q + 9) + AT2(v + 2) * all2(g[5]);
    /* Loop 11 */
    q[8] = q[8] + g[5];
}

__attribute__((noinline, visibility("hidden"))) void sinks_in_place(number *restrict w, number rate)
{
    number *const p = w + P;
    number *const x = w + X;
    number *const v = w + V;
    number *const g = w + G;
    /* Loop 8, in place: for i<2 j<2: p[2 + 2*i + j] -= rate * (x[i] * g[j]) */
    {
        const v2 shared0 = AT2(g);
        v2 value0 = all2(x[0]) * shared0;
        v2 value1 = all2(x[1]) * shared0;
        AT2(p + 2) -= all2(rate) * value0;
        AT2(p + 4) -= all2(rate) * value1;
    }
    /* Loop 9, in place */
    AT2(p) -= all2(rate) * AT2(g);
    /* Loop 10, in place */
    AT2(p + 9) -= all2(rate) * (AT2(v + 2) * all2(g[5]));
    /* Loop 11, in place */
    p[8] -= rate * g[5];
}

