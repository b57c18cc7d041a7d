/* Copies between the caller's buffers and the workspace.

   The generated code defines P (the area of parameters) and `move`, which copies all parameters between the caller's
   order and the loops' order. */

static void move(number *restrict w, double *restrict theirs, int out);

/* Copy a nest to our places, or from them if `out`. Each side has its own steps from row to row and column to column.

   One function for all nests, because compilers take longer for a loop than for a call. */
static __attribute__((noinline, unused)) void move_nest(number *restrict ours, double *restrict theirs, int out,
                                                        long long rows, long long columns, long long our_row,
                                                        long long our_column, long long their_row,
                                                        long long their_column)
{
    enum { SIDE = 8 };
    long long first = 0;
    /* A matrix that is turned goes in strips of SIDE rows, which share each cache line of the other side. */
    for (; their_row == 1 && first + SIDE <= rows; first += SIDE)
        for (long long j = 0; j < columns; j++)
            for (long long i = first; i < first + SIDE; i++)
                if (out)
                    theirs[i + their_column * j] = ours[our_row * i + our_column * j];
                else
                    ours[our_row * i + our_column * j] = theirs[i + their_column * j];
    for (long long i = first; i < rows; i++) {
        long long our = our_row * i, their = their_row * i, j = 0;
        if (our_column == 1 && their_column == 1) {
            for (; j + LANES <= columns; j += LANES, our += LANES, their += LANES)
                if (out)
                    AT(theirs + their) = AT(ours + our);
                else
                    AT(ours + our) = AT(theirs + their);
        }
        for (; j < columns; j++, our += our_column, their += their_column)
            if (out)
                theirs[their] = ours[our];
            else
                ours[our] = theirs[their];
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
