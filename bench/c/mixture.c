/* Value and gradient of the GMM rows, as a person writes them: factors are triangles, points are columns in groups. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 64, MOST = 32 };

static double log_sum_exp(const double *x, long n) {
  double top = x[0], sum = 0;
  for (long k = 0; k < n; k++) top = x[k] > top ? x[k] : top;
  for (long k = 0; k < n; k++) sum += exp(x[k] - top);
  return log(sum) + top;
}

/* A group of points under all components; what is left over beyond n counts nothing. */
static double group(const double *mu, const double *factors, const double *base, const double *x, double *counts,
                    double *d_mu, double *moments, long components, long d, long n) {
  double points[MOST][GROUP], (*scaled)[MOST][GROUP] = malloc(components * sizeof *scaled);
  double (*chances)[GROUP] = malloc(components * sizeof *chances), top[GROUP], total[GROUP], value = 0;
  for (long j = 0; j < d; j++)
    for (long p = 0; p < GROUP; p++) points[j][p] = x[(p < n ? p : 0) * d + j];
  for (long k = 0; k < components; k++) {
    const double *factor = factors + k * d * d;
    double apart[MOST][GROUP], *restrict c = chances[k];
    for (long j = 0; j < d; j++)
      for (long p = 0; p < GROUP; p++) apart[j][p] = points[j][p] - mu[k * d + j];
    for (long p = 0; p < GROUP; p++) c[p] = 0;
    for (long i = 0; i < d; i++) {
      double sum[GROUP] = {0};
      for (long j = 0; j <= i; j++)
        for (long p = 0; p < GROUP; p++) sum[p] += factor[i * d + j] * apart[j][p];
      for (long p = 0; p < GROUP; p++) { scaled[k][i][p] = sum[p]; c[p] += sum[p] * sum[p]; }
    }
    for (long p = 0; p < GROUP; p++) c[p] = base[k] - 0.5 * c[p];
  }
  for (long p = 0; p < GROUP; p++) { top[p] = chances[0][p]; total[p] = 0; }
  for (long k = 1; k < components; k++)
    for (long p = 0; p < GROUP; p++) top[p] = chances[k][p] > top[p] ? chances[k][p] : top[p];
  for (long k = 0; k < components; k++)
    for (long p = 0; p < GROUP; p++) { chances[k][p] = exp(chances[k][p] - top[p]); total[p] += chances[k][p]; }
  for (long p = 0; p < n; p++) value += log(total[p]) + top[p];
  for (long p = 0; p < GROUP; p++) total[p] = p < n ? 1 / total[p] : 0;
  for (long k = 0; k < components; k++) {
    const double *factor = factors + k * d * d;
    double apart[MOST][GROUP], pull[GROUP], count = 0;
    for (long p = 0; p < GROUP; p++) count += chances[k][p] *= total[p];
    counts[k] += count;
    for (long j = 0; j < d; j++)
      for (long p = 0; p < GROUP; p++) apart[j][p] = points[j][p] - mu[k * d + j];
    for (long i = 0; i < d; i++) {
      double all = 0;
      for (long p = 0; p < GROUP; p++) all += pull[p] = scaled[k][i][p] * chances[k][p];
      for (long j = 0; j <= i; j++) {
        double moment = 0;
        for (long p = 0; p < GROUP; p++) moment += pull[p] * apart[j][p];
        moments[k * d * d + i * d + j] += moment;
        d_mu[k * d + j] += all * factor[i * d + j];
      }
    }
  }
  free(scaled); free(chances);
  return value;
}

double mixture(const double *alpha, const double *mu, const double *q, const double *l, const double *x, double *d_alpha,
               double *d_mu, double *d_q, double *d_l, long components, long d, long n) {
  const long below = d * (d - 1) / 2;
  double *factors = calloc(2 * components * d * d + components, sizeof(double)), *moments = factors + components * d * d;
  double *base = moments + components * d * d, value = 0;
  for (long k = 0; k < components; k++) {
    base[k] = alpha[k];
    for (long i = 0; i < d; i++) {
      const double diagonal = exp(q[k * d + i]);
      base[k] += q[k * d + i];
      value += 0.5 * diagonal * diagonal - q[k * d + i];
      factors[k * d * d + i * d + i] = diagonal;
      for (long j = 0; j < i; j++) {
        const double entry = l[k * below + i * (i - 1) / 2 + j];
        value += 0.5 * entry * entry;
        factors[k * d * d + i * d + j] = entry;
      }
    }
  }
  memset(d_alpha, 0, components * sizeof(double));
  memset(d_mu, 0, components * d * sizeof(double));
  for (long p = 0; p < n; p += GROUP)
    value += group(mu, factors, base, x + p * d, d_alpha, d_mu, moments, components, d, n - p < GROUP ? n - p : GROUP);
  const double weight = log_sum_exp(alpha, components);
  for (long k = 0; k < components; k++) {
    const double count = d_alpha[k], *factor = factors + k * d * d, *moment = moments + k * d * d;
    d_alpha[k] = count - n * exp(alpha[k] - weight);
    for (long i = 0; i < d; i++) {
      const double diagonal = factor[i * d + i];
      d_q[k * d + i] = count - 1 + diagonal * (diagonal - moment[i * d + i]);
      for (long j = 0; j < i; j++) d_l[k * below + i * (i - 1) / 2 + j] = factor[i * d + j] - moment[i * d + j];
    }
  }
  free(factors);
  return value - n * weight;
}
