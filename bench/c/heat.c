/* Value and gradient of the heat row, as a person writes it: states in one stack, the periodic edges apart. */
#include <stdlib.h>
#include <string.h>

static double point(const double *row, const double *up, const double *down, long j, long left, long right) {
  const double u = row[j];
  return u + 0.1 * (up[j] + down[j] + row[left] + row[right] - 4.0 * u + 0.01 * u * (1.0 - u * u));
}

static double pulled(const double *ct, const double *up, const double *down, const double *u, long j, long left, long right) {
  return ct[j] + 0.1 * (up[j] + down[j] + ct[left] + ct[right] - 4.0 * ct[j] + 0.01 * ct[j] * (1.0 - 3.0 * u[j] * u[j]));
}

double heat(const double *start, double *slope, long n, long steps) {
  const long cells = n * n;
  double *states = malloc((steps + 1) * cells * sizeof(double)), *other = malloc(cells * sizeof(double)), value = 0;
  memcpy(states, start, cells * sizeof(double));
  for (long t = 0; t < steps; t++) {
    const double *old = states + t * cells;
    double *restrict new = states + (t + 1) * cells;
    for (long i = 0; i < n; i++) {
      const double *row = old + i * n, *up = old + (i + n - 1) % n * n, *down = old + (i + 1) % n * n;
      double *restrict out = new + i * n;
      out[0] = point(row, up, down, 0, n - 1, 1);
      for (long j = 1; j < n - 1; j++) out[j] = point(row, up, down, j, j - 1, j + 1);
      out[n - 1] = point(row, up, down, n - 1, n - 2, 0);
    }
  }
  const double *last = states + steps * cells;
  double *ct = slope, *next = other;
  for (long k = 0; k < cells; k++) { value += last[k] * last[k]; ct[k] = 2.0 * last[k]; }
  for (long t = steps - 1; t >= 0; t--) {
    const double *state = states + t * cells;
    for (long i = 0; i < n; i++) {
      const double *row = ct + i * n, *up = ct + (i + n - 1) % n * n, *down = ct + (i + 1) % n * n, *u = state + i * n;
      double *restrict out = next + i * n;
      out[0] = pulled(row, up, down, u, 0, n - 1, 1);
      for (long j = 1; j < n - 1; j++) out[j] = pulled(row, up, down, u, j, j - 1, j + 1);
      out[n - 1] = pulled(row, up, down, u, n - 1, n - 2, 0);
    }
    double *swapped = ct; ct = next; next = swapped;
  }
  if (ct != slope) memcpy(slope, ct, cells * sizeof(double));
  free(states); free(other);
  return value;
}
