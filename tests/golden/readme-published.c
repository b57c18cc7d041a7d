/* A Value graph as first published: row n of the tape is data[n], and its gradient is grad[n]. */

#include "kernel/kernel.h"

#define INPUTS 1
#define PARAMETERS 1
#define OUTPUTS 0
#define LOSS 38

double pow(double, double);
double data[39];
double grad[39];

void published_set_input(const double *x)
{
    data[0] = x[0];
}

void published_forward(void)
{
    data[2] = data[0] + data[1];
    data[3] = 1.0;
    data[4] = data[2] + data[3];
    data[5] = data[2] + data[4];
    data[6] = 1.0;
    data[7] = data[5] + data[6];
    data[8] = -1.0;
    data[9] = data[0] * data[8];
    data[10] = data[7] + data[9];
    data[11] = data[5] + data[10];
    data[12] = data[0] * data[1];
    data[13] = pow(data[1], 3.0);
    data[14] = data[12] + data[13];
    data[15] = 2.0;
    data[16] = data[14] * data[15];
    data[17] = data[1] + data[0];
    data[18] = data[17] < 0.0 ? 0.0 : data[17];
    data[19] = data[16] + data[18];
    data[20] = data[14] + data[19];
    data[21] = 3.0;
    data[22] = data[20] * data[21];
    data[23] = -1.0;
    data[24] = data[0] * data[23];
    data[25] = data[1] + data[24];
    data[26] = data[25] < 0.0 ? 0.0 : data[25];
    data[27] = data[22] + data[26];
    data[28] = data[20] + data[27];
    data[29] = -1.0;
    data[30] = data[28] * data[29];
    data[31] = data[11] + data[30];
    data[32] = pow(data[31], 2.0);
    data[33] = 0.5;
    data[34] = data[32] * data[33];
    data[35] = pow(data[32], -1.0);
    data[36] = 10.0;
    data[37] = data[35] * data[36];
    data[38] = data[34] + data[37];
}

void published_backward(void)
{
    grad[2] = 0.0;
    grad[4] = 0.0;
    grad[5] = 0.0;
    grad[7] = 0.0;
    grad[9] = 0.0;
    grad[10] = 0.0;
    grad[11] = 0.0;
    grad[12] = 0.0;
    grad[13] = 0.0;
    grad[14] = 0.0;
    grad[16] = 0.0;
    grad[17] = 0.0;
    grad[18] = 0.0;
    grad[19] = 0.0;
    grad[20] = 0.0;
    grad[22] = 0.0;
    grad[24] = 0.0;
    grad[25] = 0.0;
    grad[26] = 0.0;
    grad[27] = 0.0;
    grad[28] = 0.0;
    grad[30] = 0.0;
    grad[31] = 0.0;
    grad[32] = 0.0;
    grad[34] = 0.0;
    grad[35] = 0.0;
    grad[37] = 0.0;
    grad[38] = 1.0;
    grad[34] += grad[38];
    grad[37] += grad[38];
    grad[35] += data[36] * grad[37];
    grad[32] += -1.0 * pow(data[32], -1.0 - 1.0) * grad[35];
    grad[32] += data[33] * grad[34];
    grad[31] += 2.0 * pow(data[31], 2.0 - 1.0) * grad[32];
    grad[11] += grad[31];
    grad[30] += grad[31];
    grad[28] += data[29] * grad[30];
    grad[20] += grad[28];
    grad[27] += grad[28];
    grad[22] += grad[27];
    grad[26] += grad[27];
    grad[25] += (data[26] > 0.0) * grad[26];
    grad[1] += grad[25];
    grad[24] += grad[25];
    grad[20] += data[21] * grad[22];
    grad[14] += grad[20];
    grad[19] += grad[20];
    grad[16] += grad[19];
    grad[18] += grad[19];
    grad[17] += (data[18] > 0.0) * grad[18];
    grad[1] += grad[17];
    grad[14] += data[15] * grad[16];
    grad[12] += grad[14];
    grad[13] += grad[14];
    grad[1] += 3.0 * pow(data[1], 3.0 - 1.0) * grad[13];
    grad[1] += data[0] * grad[12];
    grad[5] += grad[11];
    grad[10] += grad[11];
    grad[7] += grad[10];
    grad[9] += grad[10];
    grad[5] += grad[7];
    grad[2] += grad[5];
    grad[4] += grad[5];
    grad[2] += grad[4];
    grad[1] += grad[2];
}

void published_update(double rate, double batch)
{
    data[1] -= rate * grad[1] / batch;
}

/* Indices of parameters and outputs in data[] and grad[]. */
static const int parameter_rows[] = {
    1,
};
static const int output_rows[] = {
    0,
};

#include "kernel/rows.h"

#include "kernel/set_input.c"

#include "kernel/training.h"

#include "straight/published.c"

#include "kernel/train.c"
