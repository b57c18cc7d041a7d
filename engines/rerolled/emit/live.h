/* The inputs that are not skipped. */
struct live {
    long long count;
    int at[LISTED + 1]; /* one more, because skipped inputs are also written */
};

#ifdef ROWS_TOGETHER
/* The rows taken together that do not skip an input. As bytes, the lists of all inputs almost fit the first-level cache. */
#if ROWS_TOGETHER < 256
typedef unsigned char row_number;
#else
typedef int row_number;
#endif
struct turned {
    row_number count;
    row_number at[ROWS_TOGETHER + 1];
};
#endif
