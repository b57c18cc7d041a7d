/* Reading one row, for callers that run the passes one by one. */

void set_input(double *restrict x, const struct column *columns, long long count, long long row)
{
    for (const struct column *c = columns; c < columns + count; x += c->width, c++) {
        const long long at = row * c->width;
        if (c->kind == DOUBLES) {
            for (long long i = 0; i < c->width; i++)
                x[i] = ((const double *)c->data)[at + i];
        } else if (c->kind == BYTES) {
            for (long long i = 0; i < c->width; i++)
                x[i] = ((const unsigned char *)c->data)[at + i] / c->divisor;
        } else {
            const long long label = ((const unsigned char *)c->data)[row];
            for (long long i = 0; i < c->width; i++)
                x[i] = 0.0;
            if (label < c->width)
                x[label] = 1.0;
        }
    }
}
