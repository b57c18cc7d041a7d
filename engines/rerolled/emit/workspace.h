/* Copies between the caller's buffers and the workspace. */

void *memcpy(void *restrict to, const void *restrict from, __SIZE_TYPE__ bytes);

/* Copy a nest from the buffer to places, or back if `out`. Both have strides for rows and columns.

   One function for all nests, because compilers take longer for a loop than for a call. */
static __attribute__((noinline, unused)) void move_nest(number *places, double *buffer, int out, long long rows,
                                                        long long columns, long long place_row, long long place_column,
                                                        long long buffer_row, long long buffer_column)
{
    enum { SIDE = 8 };
    number *restrict to = out ? buffer : places, *restrict from = out ? places : buffer;
    const long long to_row = out ? buffer_row : place_row, to_column = out ? buffer_column : place_column;
    const long long from_row = out ? place_row : buffer_row, from_column = out ? place_column : buffer_column;
    long long first = 0;
    /* A matrix that is turned goes in strips of SIDE rows, which share each cache line of the other side. */
    for (; buffer_row == 1 && first + SIDE <= rows; first += SIDE)
        for (long long j = 0; j < columns; j++)
            for (long long i = first; i < first + SIDE; i++)
                to[to_row * i + to_column * j] = from[from_row * i + from_column * j];
    for (long long i = first; i < rows; i++) {
        long long target = to_row * i, source = from_row * i, j = 0;
        if (to_column == 1 && from_column == 1)
            for (; j + LANES <= columns; j += LANES, target += LANES, source += LANES)
                AT(to + target) = AT(from + source);
        for (; j < columns; j++, target += to_column, source += from_column)
            to[target] = from[source];
    }
}

/* A workspace starts at a multiple of 64 bytes, because a vector that crosses a cache line takes twice the time. */
static number *aligned(void *w)
{
    return (number *)(((unsigned long long)w + 63) & ~63ULL);
}
