/* Reading one row, for callers that run the passes one by one. */

static double cell(const struct column *c, long long at, long long i)
{
    switch (c->kind) {
    case DOUBLES:
        return ((const double *)c->data)[at + i];
    case BYTES:
        return ((const unsigned char *)c->data)[at + i] / c->divisor;
    default:
        return ((const unsigned char *)c->data)[at] == i;
    }
}

void set_input(double *restrict x, const struct column *columns, long long count, long long row)
{
    for (const struct column *c = columns; c < columns + count; x += c->width, c++)
        for (long long i = 0; i < c->width; i++)
            x[i] = cell(c, c->kind == CLASSES ? row : row * c->width, i);
}
