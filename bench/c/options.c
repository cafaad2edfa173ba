/* Value, deltas and vegas of the Black-Scholes rows, as a person writes them. */
#include <math.h>

double options(const double *spot, const double *strike, const double *time, const double *volatility,
               double *restrict delta, double *restrict vega, long n) {
  double value = 0;
  for (long k = 0; k < n; k++) {
    const double root = sqrt(time[k]), spread = volatility[k] * root;
    const double up = (log(spot[k] / strike[k]) + (0.03 + 0.5 * volatility[k] * volatility[k]) * time[k]) / spread;
    const double down = up - spread, near = 0.5 * (1.0 + erf(up * M_SQRT1_2)), far = 0.5 * (1.0 + erf(down * M_SQRT1_2));
    value += spot[k] * near - strike[k] * exp(-0.03 * time[k]) * far;
    delta[k] = near;
    vega[k] = spot[k] * root * exp(-0.5 * up * up) * 0.3989422804014327;
  }
  return value;
}
