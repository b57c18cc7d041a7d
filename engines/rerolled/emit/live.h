/* The inputs that are not skipped. */
struct live {
    long long count;
    double squares; /* a bound on the squares of all inputs */
    int at[LISTED + 1]; /* one more, because skipped inputs are also written */
};
