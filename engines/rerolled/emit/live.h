/* The inputs that are not skipped. */
struct live {
    long long count;
    int at[LISTED + 1]; /* one more, because skipped inputs are also written */
};
