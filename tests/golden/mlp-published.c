/* A Value graph as first published: row n of the tape is data[n], and its gradient is grad[n]. */

#include "kernel/kernel.h"

#define INPUTS 3
#define PARAMETERS 9
#define OUTPUTS 1
#define LOSS 31

double pow(double, double);
double data[32];
double grad[32];

void published_set_input(const double *x)
{
    data[4] = x[0];
    data[8] = x[1];
    data[25] = x[2];
}

void published_forward(void)
{
    data[5] = data[3] * data[4];
    data[6] = data[2] + data[5];
    data[9] = data[7] * data[8];
    data[10] = data[6] + data[9];
    data[11] = data[10] < 0.0 ? 0.0 : data[10];
    data[12] = data[1] * data[11];
    data[13] = data[0] + data[12];
    data[17] = data[16] * data[4];
    data[18] = data[15] + data[17];
    data[20] = data[19] * data[8];
    data[21] = data[18] + data[20];
    data[22] = data[21] < 0.0 ? 0.0 : data[21];
    data[23] = data[14] * data[22];
    data[24] = data[13] + data[23];
    data[26] = -1.0;
    data[27] = data[25] * data[26];
    data[28] = data[24] + data[27];
    data[29] = pow(data[28], 2.0);
    data[30] = 0.0;
    data[31] = data[29] + data[30];
}

void published_backward(void)
{
    grad[5] = 0.0;
    grad[6] = 0.0;
    grad[9] = 0.0;
    grad[10] = 0.0;
    grad[11] = 0.0;
    grad[12] = 0.0;
    grad[13] = 0.0;
    grad[17] = 0.0;
    grad[18] = 0.0;
    grad[20] = 0.0;
    grad[21] = 0.0;
    grad[22] = 0.0;
    grad[23] = 0.0;
    grad[24] = 0.0;
    grad[27] = 0.0;
    grad[28] = 0.0;
    grad[29] = 0.0;
    grad[31] = 1.0;
    grad[29] += grad[31];
    grad[28] += 2.0 * pow(data[28], 2.0 - 1.0) * grad[29];
    grad[24] += grad[28];
    grad[27] += grad[28];
    grad[13] += grad[24];
    grad[23] += grad[24];
    grad[14] += data[22] * grad[23];
    grad[22] += data[14] * grad[23];
    grad[21] += (data[22] > 0.0) * grad[22];
    grad[18] += grad[21];
    grad[20] += grad[21];
    grad[19] += data[8] * grad[20];
    grad[15] += grad[18];
    grad[17] += grad[18];
    grad[16] += data[4] * grad[17];
    grad[0] += grad[13];
    grad[12] += grad[13];
    grad[1] += data[11] * grad[12];
    grad[11] += data[1] * grad[12];
    grad[10] += (data[11] > 0.0) * grad[11];
    grad[6] += grad[10];
    grad[9] += grad[10];
    grad[7] += data[8] * grad[9];
    grad[2] += grad[6];
    grad[5] += grad[6];
    grad[3] += data[4] * grad[5];
}

void published_update(double rate, double batch)
{
    data[3] -= rate * grad[3] / batch;
    data[7] -= rate * grad[7] / batch;
    data[2] -= rate * grad[2] / batch;
    data[16] -= rate * grad[16] / batch;
    data[19] -= rate * grad[19] / batch;
    data[15] -= rate * grad[15] / batch;
    data[1] -= rate * grad[1] / batch;
    data[14] -= rate * grad[14] / batch;
    data[0] -= rate * grad[0] / batch;
}

/* Indices of parameters and outputs in data[] and grad[]. */
static const int parameter_rows[] = {
    3, 7, 2, 16, 19, 15, 1, 14, 0,
};
static const int output_rows[] = {
    24,
};

#include "kernel/rows.h"

#include "kernel/training.h"

#include "straight/published.c"

#include "kernel/train.c"
