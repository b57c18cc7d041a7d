/* A Value graph as straight-line C: 2 inputs, 4 parameters, 1 outputs, a workspace of 5 doubles. */

#include "kernel/kernel.h"

#define INPUTS 2
#define PARAMETERS 4
double exp(double);
double log(double);
double pow(double, double);
double tanh(double);

__attribute__((noinline, visibility("hidden"))) void
forward_0(const double *restrict x, const double *restrict p, double *restrict w, double *restrict y)
{
    const double v7 = p[1] + p[0] * x[0];
    w[0] = v7 < 0.0 ? 0.0 : v7;
    const double v13 = p[3] + p[2] * w[0];
    y[0] = v13;
    w[1] = v13;
}

__attribute__((noinline, visibility("hidden"))) void
forward_1(const double *restrict x, const double *restrict p, double *restrict w, double *restrict y)
{
    w[2] = w[1] + x[1] * -1.0;
    w[3] = pow(w[2], 2.0) + 0.0;
}

__attribute__((noinline, visibility("hidden"))) void
backward_0(const double *restrict x, const double *restrict p, double *restrict w, double *restrict q)
{
    const double v26 = 2.0 * pow(w[2], 1.0) * 1.0;
    q[3] += v26;
    q[2] += w[0] * v26;
    w[4] = v26;
}

__attribute__((noinline, visibility("hidden"))) void
backward_1(const double *restrict x, const double *restrict p, double *restrict w, double *restrict q)
{
    const double v33 = (w[0] > 0.0) * (p[2] * w[4]);
    q[1] += v33;
    q[0] += x[0] * v33;
}

double forward(const double *restrict x, const double *restrict p, double *restrict w, double *restrict y)
{
    forward_0(x, p, w, y);
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
