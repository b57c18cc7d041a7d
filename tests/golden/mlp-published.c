/* A Value graph as first published: row n of the tape is data[n], and its gradient is grad[n]. */

#include "kernel/kernel.h"

#define INPUTS 2
#define PARAMETERS 4
#define OUTPUTS 1
#define LOSS 16
double exp(double);
double log(double);
double pow(double, double);
double tanh(double);
double data[17];
double grad[17];

void published_set_input(const double *x)
{
    data[4] = x[0];
    data[10] = x[1];
}

void published_forward(void)
{
    data[5] = data[3] * data[4];
    data[6] = data[2] + data[5];
    data[7] = data[6] < 0.0 ? 0.0 : data[6];
    data[8] = data[1] * data[7];
    data[9] = data[0] + data[8];
    data[11] = -1.0;
    data[12] = data[10] * data[11];
    data[13] = data[9] + data[12];
    data[14] = pow(data[13], 2.0);
    data[15] = 0.0;
    data[16] = data[14] + data[15];
}

void published_backward(void)
{
    grad[5] = 0.0;
    grad[6] = 0.0;
    grad[7] = 0.0;
    grad[8] = 0.0;
    grad[9] = 0.0;
    grad[12] = 0.0;
    grad[13] = 0.0;
    grad[14] = 0.0;
    grad[16] = 1.0;
    grad[14] += grad[16];
    grad[13] += 2.0 * pow(data[13], 2.0 - 1.0) * grad[14];
    grad[9] += grad[13];
    grad[12] += grad[13];
    grad[0] += grad[9];
    grad[8] += grad[9];
    grad[1] += data[7] * grad[8];
    grad[7] += data[1] * grad[8];
    grad[6] += (data[7] > 0.0) * grad[7];
    grad[2] += grad[6];
    grad[5] += grad[6];
    grad[3] += data[4] * grad[5];
}

void published_update(double rate, double batch)
{
    data[3] -= rate * grad[3] / batch;
    data[2] -= rate * grad[2] / batch;
    data[1] -= rate * grad[1] / batch;
    data[0] -= rate * grad[0] / batch;
}

/* Indices of parameters and outputs in data[] and grad[]. */
static const int parameter_rows[] = {
    3, 2, 1, 0,
};
static const int output_rows[] = {
    9,
};

#include "kernel/rows.h"

#include "kernel/training.h"

#include "straight/published.c"

#include "kernel/train.c"
