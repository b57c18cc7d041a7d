/* The interface over several lengths's conductor. cffi parses this file after kernel.h. */

/* The kernel of one shape, with buffers of its own. */
struct member {
    void (*set_input)(double *x, const struct column *columns, long long count, long long row);
    double (*forward)(const double *x, const double *p, double *w, double *y);
    void (*backward)(const double *x, const double *p, double *w, double *q);
    const struct column *columns;
    long long column_count;
    double *x;
    double *w;
    double *y;
};

/* The buffers that all members share, in one order of the parameters. */
struct shared {
    const struct member *members;
    double *p;
    double *q;
    double *const *states; /* those that the optimiser keeps */
    long long parameters;
    /* Updates whole vectors, and lists the lanes that it leaves: see `lanes_in_machine_code`. 0 if there are no lanes. */
    void (*lanes)(const double *numbers, long long *words);
    long long *words;
    const long long *list;
};

/* Steps over rows that wrap around, with an update after every `batch` steps. */
struct course {
    const long long *members; /* row -> its member */
    const long long *places;  /* row -> its number among the rows of that member */
    long long first_row;
    long long rows;
    long long steps;
    long long batch;
    long long taken;        /* steps since the last update */
    long long first_update; /* the index of the first update to come, from 0 */
    const double *rates;    /* one for each update to come */
    double *losses;         /* output: one for each step */
    long long learns;
};

/* Returns the number of finite losses. The first other loss ends the course, before its backward pass. */
long long take(const struct shared *shared, const struct course *course);

/* An update of every parameter by a batch, which sets the gradients to 0. index: of the update, from 0. */
void update_shared(const struct shared *shared, long long index, double rate, double batch);
