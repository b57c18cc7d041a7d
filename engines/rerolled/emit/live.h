/* The inputs that are not skipped. */
struct live {
    long long count;
    int at[LISTED + 1]; /* one more, because skipped inputs are also written */
};

#ifdef ROWS_TOGETHER
/* The rows, of those taken together, that do not skip an input. Their numbers are bytes, so that the lists of all
   inputs almost fit the first-level cache. */
struct turned {
    unsigned char count;
    unsigned char at[ROWS_TOGETHER + 1];
};
#endif
