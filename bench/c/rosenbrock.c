/* Value and gradient of the Rosenbrock rows, as a person writes them: one pass. */
double rosenbrock(const double *restrict x, double *restrict out, long n) {
  double value = 0, carried = 0;
  for (long k = 0; k + 1 < n; k++) {
    const double r = x[k + 1] - x[k] * x[k], s = 1 - x[k];
    value += 100 * r * r + s * s;
    out[k] = carried - 400 * r * x[k] - 2 * s;
    carried = 200 * r;
  }
  out[n - 1] = carried;
  return value;
}
