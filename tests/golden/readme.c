/* A Value graph as straight-line C: 1 inputs, 1 parameters, 0 outputs, a workspace of 9 doubles. */

#include "kernel/kernel.h"

#define INPUTS 1
#define PARAMETERS 1

double pow(double, double);

__attribute__((noinline, visibility("hidden"))) void forward_0(const double *restrict x, const double *restrict p,
                                                               double *restrict w)
{
    const double v2 = x[0] + p[0];
    const double v5 = v2 + (v2 + 1.0);
    const double v11 = v5 + (v5 + 1.0 + x[0] * -1.0);
    const double v15 = x[0] * p[0] + pow(p[0], 3.0);
    const double v18 = p[0] + x[0];
    w[0] = v18 < 0.0 ? 0.0 : v18;
    w[1] = v15;
    w[3] = v11;
}

__attribute__((noinline, visibility("hidden"))) void forward_1(const double *restrict x, const double *restrict p,
                                                               double *restrict w)
{
    const double v24 = w[1] + (w[1] * 2.0 + w[0]);
    const double v29 = p[0] + x[0] * -1.0;
    w[2] = v29 < 0.0 ? 0.0 : v29;
    const double v37 = (v24 + (v24 * 3.0 + w[2])) * -1.0;
    w[4] = w[3] + v37;
}

__attribute__((noinline, visibility("hidden"))) void forward_2(double *restrict w)
{
    w[5] = pow(w[4], 2.0);
    w[6] = w[5] * 0.5 + pow(w[5], -1.0) * 10.0;
}

__attribute__((noinline, visibility("hidden"))) void backward_0(double *restrict w, double *restrict q)
{
    const double v54 = -1.0 * pow(w[5], -2.0) * (10.0 * 1.0);
    const double v61 = 2.0 * pow(w[4], 1.0) * (v54 + 0.5 * 1.0);
    const double v62 = -1.0 * v61;
    q[0] += (w[2] > 0.0) * v62;
    w[7] = v62;
    w[8] = v61;
}

__attribute__((noinline, visibility("hidden"))) void backward_1(const double *restrict x, const double *restrict p,
                                                                double *restrict w, double *restrict q)
{
    const double v68 = w[7] + 3.0 * w[7];
    q[0] += (w[0] > 0.0) * v68;
    const double v74 = v68 + 2.0 * v68;
    q[0] += 3.0 * pow(p[0], 2.0) * v74;
    q[0] += x[0] * v74;
}

__attribute__((noinline, visibility("hidden"))) void backward_2(double *restrict w, double *restrict q)
{
    const double v83 = w[8] + w[8];
    q[0] += v83 + v83;
}

double forward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict y)
{
    (void)y;
    forward_0(x, p, w);
    forward_1(x, p, w);
    forward_2(w);
    return w[6];
}

#include "kernel/rows.h"

#include "kernel/set_input.c"

void backward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict q)
{
    backward_0(w, q);
    backward_1(x, p, w, q);
    backward_2(w, q);
}

#include "kernel/training.h"

#include "straight/turn.c"

#include "kernel/train.c"
