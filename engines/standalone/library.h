/* A row is NAME_INPUTS doubles, or one row of some columns side by side. */

#ifndef NAME_H
#define NAME_H

#ifdef __cplusplus
extern "C" {
#endif

enum { NAME_INPUTS = INPUTS, NAME_FEATURES = FEATURES, NAME_OUTPUTS = OUTPUTS, NAME_PARAMETERS = PARAMETERS };
enum { NAME_DOUBLES, NAME_BYTES, NAME_CLASSES };

/* Some inputs of every row. Rows lie one after the other in `data`. */
struct NAME_column {
    const void *data;
    long long width; /* inputs per row */
    double divisor;  /* a byte becomes byte / divisor; for others 1.0 */
    long long kind;  /* NAME_DOUBLES, NAME_BYTES, or NAME_CLASSES: a byte, the label, becomes `width` inputs: 0.0, and
                        1.0 at the label's place */
};

struct NAME_model;

/* A model with its starting parameters. Returns NULL if memory runs out, or if there may be only one model. */
struct NAME_model *NAME_new(void);
void NAME_free(struct NAME_model *model);

/* Set the inputs from a row of 1 to 16 columns whose widths add up to NAME_INPUTS. Returns -1 otherwise. You may write
   the inputs yourself instead; then call `forward` before `backward`. */
int NAME_set_input(struct NAME_model *model, const struct NAME_column *columns, long long count, long long row);
double *NAME_inputs(struct NAME_model *model);

/* Return the loss. The outputs are those of the last pass. */
double NAME_forward(struct NAME_model *model);
const double *NAME_outputs(const struct NAME_model *model);

/* The outputs for NAME_FEATURES inputs. The others, on which no output depends, become 0.0. */
const double *NAME_predict(struct NAME_model *model, const double *features);

/* training */
/* Add the row's gradients. Returns -1 unless `forward` ran since the last change of inputs by `set_input`. */
int NAME_backward(struct NAME_model *model);

/* gradients = 0; discards a partial batch */
void NAME_zero_grad(struct NAME_model *model);

/* parameters -= rate * gradients / batch, then gradients = 0 */
void NAME_update(struct NAME_model *model, double rate, double batch);

/* Take steps over rows that wrap around, with an update after every `batch` of them; a partial batch waits for the next
   call. losses: room for `steps` doubles. Training stops at the first loss that is not finite, which is stored after the
   finite ones. Returns the number of finite losses, or -1 for wrong arguments or if memory runs out. */
long long NAME_train(struct NAME_model *model, const struct NAME_column *columns, long long count, long long rows,
                     long long first_row, long long steps, long long batch, double rate, double *losses);

/* Return to the starting parameters. */
void NAME_restart(struct NAME_model *model);

const double *NAME_parameters(const struct NAME_model *model);
void NAME_set_parameters(struct NAME_model *model, const double *parameters);

/* These may be written. */
double *NAME_gradients(struct NAME_model *model);
/* end of training */

#ifdef __cplusplus
}
#endif

#endif
