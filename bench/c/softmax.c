/* Value and gradient of the softmax row, as a person writes them: a row stays in the cache. */
#include <math.h>

double softmax(const float *restrict x, const float *restrict weights, float *restrict out, long rows, long columns) {
  double value = 0;
  for (long i = 0; i < rows; i++) {
    const float *restrict a = x + i * columns, *restrict w = weights + i * columns;
    float *restrict to = out + i * columns, top = a[0], sum = 0, dot = 0;
    for (long j = 0; j < columns; j++) top = a[j] > top ? a[j] : top;
    for (long j = 0; j < columns; j++) { to[j] = expf(a[j] - top); sum += to[j]; dot += to[j] * w[j]; }
    const float scale = 1 / sum, mean = dot * scale;
    for (long j = 0; j < columns; j++) to[j] = to[j] * scale * (w[j] - mean);
    value += mean;
  }
  return value;
}
