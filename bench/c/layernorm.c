/* Value and gradient of the layer norm row, as a person writes them: a row stays in the cache, columns add up on the way. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

double layernorm(const float *restrict x, const float *restrict gain, const float *restrict shift, float *restrict d_x,
                 float *restrict d_gain, float *restrict d_shift, long rows, long columns) {
  const float share = 1.0f / columns, scale = 2.0f / (rows * columns);
  float *restrict slope = malloc(columns * sizeof(float));
  double value = 0;
  memset(d_gain, 0, columns * sizeof(float));
  memset(d_shift, 0, columns * sizeof(float));
  for (long i = 0; i < rows; i++) {
    const float *restrict a = x + i * columns;
    float *restrict out = d_x + i * columns, mean = 0, square = 0, total = 0, pulled = 0, along = 0;
    for (long j = 0; j < columns; j++) mean += a[j];
    mean *= share;
    for (long j = 0; j < columns; j++) { out[j] = a[j] - mean; square += out[j] * out[j]; }
    const float inverse = 1 / sqrtf(square * share + 1e-5f);
    for (long j = 0; j < columns; j++) {
      const float normed = out[j] * inverse, t = tanhf(normed * gain[j] + shift[j]), s = scale * t * (1 - t * t), g = s * gain[j];
      total += t * t;
      d_shift[j] += s;
      d_gain[j] += s * normed;
      out[j] = normed;
      slope[j] = g;
      pulled += g;
      along += g * normed;
    }
    pulled *= share; along *= share;
    for (long j = 0; j < columns; j++) out[j] = inverse * (slope[j] - pulled - out[j] * along);
    value += total;
  }
  free(slope);
  return value / ((double)rows * columns);
}
