/* Copies between the caller's buffers and the workspace.

   The generated code defines P (the area of parameters) and `move`, which copies all parameters between the caller's
   order and the loops' order. */

static void move(number *restrict w, double *restrict buffer, int out);

/* Copy a nest from the buffer to places, or back if `out`. Both have strides for rows and columns.

   One function for all nests, because compilers take longer for a loop than for a call. */
static __attribute__((noinline, unused)) void move_nest(number *restrict places, double *restrict buffer, int out,
                                                        long long rows, long long columns, long long place_row,
                                                        long long place_column, long long buffer_row,
                                                        long long buffer_column)
{
    enum { SIDE = 8 };
    long long first = 0;
    /* A matrix that is turned goes in strips of SIDE rows, which share each cache line of the other side. */
    for (; buffer_row == 1 && first + SIDE <= rows; first += SIDE)
        for (long long j = 0; j < columns; j++)
            for (long long i = first; i < first + SIDE; i++)
                if (out)
                    buffer[i + buffer_column * j] = places[place_row * i + place_column * j];
                else
                    places[place_row * i + place_column * j] = buffer[i + buffer_column * j];
    for (long long i = first; i < rows; i++) {
        long long place = place_row * i, index = buffer_row * i, j = 0;
        if (place_column == 1 && buffer_column == 1) {
            for (; j + LANES <= columns; j += LANES, place += LANES, index += LANES)
                if (out)
                    AT(buffer + index) = AT(places + place);
                else
                    AT(places + place) = AT(buffer + index);
        }
        for (; j < columns; j++, place += place_column, index += buffer_column)
            if (out)
                buffer[index] = places[place];
            else
                places[place] = buffer[index];
    }
}

/* A workspace starts at a multiple of 64 bytes, because a vector that crosses a cache line takes twice the time. */
static number *aligned(void *w)
{
    return (number *)(((unsigned long long)w + 63) & ~63ULL);
}

static void take_inputs(number *restrict w, const double *restrict x)
{
    for (long long i = 0; i < INPUTS; i++)
        w[i] = x[i];
}

static __attribute__((unused)) void give_inputs(const number *restrict w, double *restrict x)
{
    for (long long i = 0; i < INPUTS; i++)
        x[i] = w[i];
}

static void take_parameters(number *restrict w, const double *restrict p)
{
    move(w, (double *)p, 0);
}
