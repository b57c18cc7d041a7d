/* A copy of a matrix with its rows and columns exchanged. */

#if LANES >= 4
#ifdef __clang__
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(a, b, ...) __builtin_shuffle(a, b, (m4){__VA_ARGS__})
#endif

/* Four columns of four numbers, from_row apart, become four rows, to_row apart. */
INLINE void transpose_block(number *to, long long to_row, const number *from, long long from_row)
{
    const v4 a = AT4(from), b = AT4(from + from_row), c = AT4(from + 2 * from_row), d = AT4(from + 3 * from_row);
    const v4 even_ab = PICK(a, b, 0, 4, 2, 6), odd_ab = PICK(a, b, 1, 5, 3, 7);
    const v4 even_cd = PICK(c, d, 0, 4, 2, 6), odd_cd = PICK(c, d, 1, 5, 3, 7);
    AT4(to) = PICK(even_ab, even_cd, 0, 1, 4, 5);
    AT4(to + to_row) = PICK(odd_ab, odd_cd, 0, 1, 4, 5);
    AT4(to + 2 * to_row) = PICK(even_ab, even_cd, 2, 3, 6, 7);
    AT4(to + 3 * to_row) = PICK(odd_ab, odd_cd, 2, 3, 6, 7);
}
#endif

/* to[to_row * i + j] = from[step * i + from_row * j] for i < rows and j < columns. */
static __attribute__((noinline, unused)) void transpose(number *to, long long to_row, const number *from, long long step,
                                                        long long from_row, long long rows, long long columns)
{
    long long i = 0;
#if LANES >= 4
    for (; (step == 1 || step == -1) && columns % 4 == 0 && i + 4 <= rows; i += 4)
        for (long long j = 0; j < columns; j += 4)
            if (step == 1)
                transpose_block(to + to_row * i + j, to_row, from + i + from_row * j, from_row);
            else /* the numbers of four rows, from the last one to the first */
                transpose_block(to + to_row * (i + 3) + j, -to_row, from - i - 3 + from_row * j, from_row);
#endif
    for (; i < rows; i++)
        for (long long j = 0; j < columns; j++)
            to[to_row * i + j] = from[step * i + from_row * j];
}
