/* The interface between a compiled graph and its caller. cffi parses this file.

   x: inputs of one row   p: parameters   w: workspace   y: outputs   q: gradients of the parameters
   No two of these buffers overlap. */

/* Some inputs of every row, side by side with those of the other columns. */
struct column {
    const void *data;
    long long width; /* inputs per row */
    double divisor;  /* BYTES become byte / divisor */
    long long kind;  /* DOUBLES, BYTES, or CLASSES: a label becomes `width` inputs, all 0.0 except one */
    double high;     /* byte * high + byte * low is byte / divisor, for all bytes; 0.0 if no such sum is */
    double low;
    const double *quotients; /* byte / divisor for each byte, in a column of BYTES */
};

struct buffers {
    double *x;
    double *p;
    double *w;
    double *y;
    double *q;
};

/* Steps over rows that wrap around, with an update after every `batch` steps. */
struct stretch {
    const struct column *columns;
    long long column_count;
    long long rows;
    long long first_row;
    long long steps;
    long long batch;
    long long taken;     /* steps since the last update */
    const double *rates; /* one for each update to come */
    double *losses;      /* output: one for each step */
    long long learns;    /* 0: run forward passes only, and change no parameter */
    long long y_step;    /* outputs per step, if y holds every step's outputs, which needs learns == 0; else 0 */
};

void set_input(double *x, const struct column *columns, long long count, long long row);
double forward(const double *x, const double *p, double *w, double *y);
void backward(const double *x, const double *p, double *w, double *q); /* adds to q; call forward first */
void update(double *p, double *q, double rate, double batch); /* p -= rate * q / batch; q = 0 */

/* Returns the number of finite losses. The first other loss ends the stretch, before its backward pass. */
long long train(const struct buffers *buffers, const struct stretch *stretch);
