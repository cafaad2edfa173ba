/* Value and gradient of the stencil row, as a person writes them: all plates in one stack, which is kept between calls
   since fresh pages take longer than the steps; the rim apart. */
#include <stdlib.h>
#include <string.h>

double stencil(const double *start, const double *conductivity, double *slope, double *restrict d_conductivity, long n, long steps) {
  const long cells = n * n, inner = n - 2;
  static double *plates;
  if (!plates) plates = malloc((steps + 1) * cells * sizeof(double));
  double *other = malloc(cells * sizeof(double));
  double *flow = calloc(3 * n, sizeof(double)), value = 0;
  memcpy(plates, start, cells * sizeof(double));
  for (long t = 0; t < steps; t++) {
    const double *old = plates + t * cells;
    double *restrict new = plates + (t + 1) * cells;
    memcpy(new, old, n * sizeof(double));
    memcpy(new + cells - n, old + cells - n, n * sizeof(double));
    for (long i = 1; i < n - 1; i++) {
      const double *u = old + i * n, *k = conductivity + (i - 1) * inner - 1;
      double *restrict out = new + i * n;
      out[0] = u[0];
      for (long j = 1; j < n - 1; j++) out[j] = u[j] + k[j] * (u[j + n] + u[j - n] + u[j + 1] + u[j - 1] - 4.0 * u[j]);
      out[n - 1] = u[n - 1];
    }
  }
  const double *last = plates + steps * cells;
  double *ct = slope, *next = other;
  for (long c = 0; c < cells; c++) { value += last[c] * last[c]; ct[c] = 2.0 * last[c]; }
  memset(d_conductivity, 0, inner * inner * sizeof(double));
  for (long t = steps - 1; t >= 0; t--) {
    const double *plate = plates + t * cells;
    double *above = flow, *here = flow + n, *below = flow + 2 * n; /* conductivity times cotangent, with a rim of zeros */
    memset(flow, 0, 3 * n * sizeof(double));
    for (long i = 0; i < n; i++) {
      const double *c = ct + i * n, *u = plate + i * n, *k = conductivity + i * inner - 1;
      double *restrict out = next + i * n, *restrict d = d_conductivity + (i - 1) * inner - 1;
      if (i + 1 < n - 1) for (long j = 1; j < n - 1; j++) below[j] = k[j] * c[j + n];
      else memset(below, 0, n * sizeof(double));
      if (i > 0 && i < n - 1)
        for (long j = 1; j < n - 1; j++) d[j] += c[j] * (u[j + n] + u[j - n] + u[j + 1] + u[j - 1] - 4.0 * u[j]);
      out[0] = c[0] + here[1];
      for (long j = 1; j < n - 1; j++) out[j] = c[j] + above[j] + below[j] + here[j - 1] + here[j + 1] - 4.0 * here[j];
      out[n - 1] = c[n - 1] + here[n - 2];
      double *turned = above; above = here; here = below; below = turned;
    }
    double *swapped = ct; ct = next; next = swapped;
  }
  if (ct != slope) memcpy(slope, ct, cells * sizeof(double));
  free(other); free(flow);
  return value;
}
