/* A Value graph as straight-line C: 3 inputs, 9 parameters, 1 outputs, a workspace of 5 doubles. */

#include "kernel/kernel.h"

#define INPUTS 3
#define PARAMETERS 9

double pow(double, double);

__attribute__((noinline, visibility("hidden"))) void forward_0(const double *restrict x, const double *restrict p,
                                                               double *restrict w)
{
    const double v15 = p[2] + p[0] * x[0] + p[1] * x[1];
    w[0] = v15 < 0.0 ? 0.0 : v15;
    const double v25 = p[5] + p[3] * x[0] + p[4] * x[1];
    w[1] = v25 < 0.0 ? 0.0 : v25;
}

__attribute__((noinline, visibility("hidden"))) void forward_1(const double *restrict x, const double *restrict p,
                                                               double *restrict w, double *restrict y)
{
    const double v31 = p[8] + p[6] * w[0] + p[7] * w[1];
    y[0] = v31;
    w[2] = v31 + x[2] * -1.0;
    w[3] = pow(w[2], 2.0) + 0.0;
}

__attribute__((noinline, visibility("hidden"))) void backward_0(const double *restrict x, const double *restrict p,
                                                                double *restrict w, double *restrict q)
{
    const double v44 = 2.0 * pow(w[2], 1.0) * 1.0;
    q[7] += w[1] * v44;
    const double v50 = (w[1] > 0.0) * (p[7] * v44);
    q[4] += x[1] * v50;
    q[5] += v50;
    q[3] += x[0] * v50;
    w[4] = v44;
}

__attribute__((noinline, visibility("hidden"))) void backward_1(const double *restrict x, const double *restrict p,
                                                                double *restrict w, double *restrict q)
{
    q[8] += w[4];
    q[6] += w[0] * w[4];
    const double v62 = (w[0] > 0.0) * (p[6] * w[4]);
    q[1] += x[1] * v62;
    q[2] += v62;
    q[0] += x[0] * v62;
}

double forward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict y)
{
    forward_0(x, p, w);
    forward_1(x, p, w, y);
    return w[3];
}

#include "kernel/rows.h"

void backward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict q)
{
    backward_0(x, p, w, q);
    backward_1(x, p, w, q);
}

#include "kernel/training.h"

#include "straight/turn.c"

#include "kernel/train.c"
