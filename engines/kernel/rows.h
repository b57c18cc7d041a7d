/* Reading rows. LANES: doubles in a vector, if the kernel has vectors. */

enum column_kind { DOUBLES, BYTES, CLASSES };

#if LANES >= 4 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define READS_VECTORS
/* Read as many bytes as fill whole vectors, and return their number. */
static long long read_vectors(double *restrict x, const unsigned char *bytes, const struct column *c)
{
    long long i = 0;
    /* Without a conversion of integers, which gcc does one by one: 2**52 + byte, as a pattern of bits, minus 2**52. */
    typedef double reals __attribute__((vector_size(8 * LANES)));
    typedef long long bits __attribute__((vector_size(8 * LANES)));
    typedef reals __attribute__((aligned(8), may_alias)) placed;
    typedef long long __attribute__((aligned(1), may_alias)) eight;
    typedef bits __attribute__((aligned(8), may_alias)) many;
    static const long long shifts[8] = {0, 8, 16, 24, 32, 40, 48, 56};
    const reals zero = {0}, high = zero + c->high, low = zero + c->low, offset = zero + 0x1p52;
    for (; i + 8 <= c->width; i += 8)
        for (int n = 0; n < 8; n += LANES) {
            const bits each = ((bits){0} + *(const eight *)(bytes + i)) >> *(const many *)(shifts + n) & 255;
            const reals byte = (reals)(each | (bits)offset) - offset;
            *(placed *)(x + i + n) = byte * high + byte * low;
        }
    return i;
}
#endif

static void read_column(double *restrict x, const struct column *c, long long row)
{
    const long long width = c->width;
    if (c->kind == DOUBLES) {
        const double *cells = (const double *)c->data + row * width;
        for (long long i = 0; i < width; i++)
            x[i] = cells[i];
    } else if (c->kind == BYTES) {
        const unsigned char *cells = (const unsigned char *)c->data + row * width;
        const double *quotients = c->quotients; /* a row of divisions takes longer than a layer's products */
        long long i = 0;
#ifdef READS_VECTORS
        if (c->high != 0.0)
            i = read_vectors(x, cells, c);
#endif
        for (; i + 4 <= width; i += 4) {
            x[i] = quotients[cells[i]];
            x[i + 1] = quotients[cells[i + 1]];
            x[i + 2] = quotients[cells[i + 2]];
            x[i + 3] = quotients[cells[i + 3]];
        }
        for (; i < width; i++)
            x[i] = quotients[cells[i]];
    } else {
        const unsigned char label = ((const unsigned char *)c->data)[row];
        for (long long i = 0; i < width; i++)
            x[i] = label == i;
    }
}

/* Read one row, for callers that run the passes one by one. */
void set_input(double *restrict x, const struct column *columns, long long count, long long row)
{
    for (const struct column *c = columns; c < columns + count; x += c->width, c++)
        read_column(x, c, row);
}
