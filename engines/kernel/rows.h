/* Reading one column of a row.

   A kernel that computes with other numbers than doubles defines HAS_NUMBER and `number` before this file. */

#ifndef HAS_NUMBER
typedef double number;
#endif

enum column_kind { DOUBLES, BYTES, CLASSES };

/* quotients: byte / divisor for each byte, if the column holds BYTES. A kernel without a training loop has no use for it.
 */
static __attribute__((unused)) void read_column(number *restrict x, const struct column *c, long long row,
                                                const number *restrict quotients)
{
    const long long width = c->width;
    if (c->kind == DOUBLES) {
        const double *cells = (const double *)c->data + row * width;
        for (long long i = 0; i < width; i++)
            x[i] = cells[i];
    } else if (c->kind == BYTES) {
        const unsigned char *cells = (const unsigned char *)c->data + row * width;
        long long i = 0;
        for (; i + 4 <= width; i += 4, cells += 4) {
            x[i] = quotients[cells[0]];
            x[i + 1] = quotients[cells[1]];
            x[i + 2] = quotients[cells[2]];
            x[i + 3] = quotients[cells[3]];
        }
        for (; i < width; i++)
            x[i] = quotients[*cells++];
    } else {
        const unsigned char label = ((const unsigned char *)c->data)[row];
        for (long long i = 0; i < width; i++)
            x[i] = label == i;
    }
}
