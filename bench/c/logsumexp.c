/* Value and gradient of the log-sum-exp row, as a person writes them: the exponentials of a row stand in its gradient. */
#include <math.h>

double logsumexp(const double *restrict x, double *restrict out, long rows, long columns) {
  double value = 0;
  for (long i = 0; i < rows; i++) {
    const double *restrict a = x + i * columns;
    double *restrict to = out + i * columns, top = a[0], sum = 0;
    for (long j = 0; j < columns; j++) top = a[j] > top ? a[j] : top;
    for (long j = 0; j < columns; j++) { to[j] = exp(a[j] - top); sum += to[j]; }
    const double scale = 1 / sum;
    for (long j = 0; j < columns; j++) to[j] *= scale;
    value += log(sum) + top;
  }
  return value;
}
