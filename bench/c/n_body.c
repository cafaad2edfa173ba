/* Value and gradient of the n-body row, as a person writes them: coordinates apart, one row of pairs after the other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double H = 0.01, SOFTENING = 0.1;

double n_body(const double *place, const double *speed, const double *mass, double *d_place, double *d_speed,
              double *restrict d_mass, long n, long steps) {
  double *all = calloc((3 * (steps + 1) + 9) * n, sizeof(double)), *now = all + 3 * (steps + 1) * n, *back = now + 3 * n, *ds = back + 3 * n;
  double value = 0;
  for (long i = 0; i < n; i++)
    for (long c = 0; c < 3; c++) { all[c * n + i] = place[3 * i + c]; now[c * n + i] = speed[3 * i + c]; }
  for (long t = 0; t < steps; t++) {
    const double *x = all + 3 * t * n, *y = x + n, *z = y + n;
    for (long i = 0; i < n; i++) {
      double ax = 0, ay = 0, az = 0;
      for (long j = 0; j < n; j++) {
        const double dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i], s = 1 / (dx * dx + dy * dy + dz * dz + SOFTENING);
        const double w = mass[j] * s * sqrt(s);
        ax += w * dx; ay += w * dy; az += w * dz;
      }
      now[i] += H * ax; now[n + i] += H * ay; now[2 * n + i] += H * az;
    }
    for (long k = 0; k < 3 * n; k++) all[3 * (t + 1) * n + k] = x[k] + H * now[k];
  }
  for (long i = 0; i < n; i++) {
    const double square = now[i] * now[i] + now[n + i] * now[n + i] + now[2 * n + i] * now[2 * n + i];
    value += 0.5 * mass[i] * square;
    d_mass[i] = 0.5 * square;
    for (long c = 0; c < 3; c++) ds[c * n + i] = mass[i] * now[c * n + i];
  }
  for (long t = steps - 1; t >= 0; t--) {
    const double *x = all + 3 * t * n, *y = x + n, *z = y + n;
    double *restrict bx = back, *restrict by = back + n, *restrict bz = back + 2 * n;
    for (long k = 0; k < 3 * n; k++) ds[k] += H * back[k];
    for (long i = 0; i < n; i++) {
      const double ax = H * ds[i], ay = H * ds[n + i], az = H * ds[2 * n + i];
      double ox = 0, oy = 0, oz = 0;
      for (long j = 0; j < n; j++) {
        const double dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i], s = 1 / (dx * dx + dy * dy + dz * dz + SOFTENING);
        const double w = s * sqrt(s), along = ax * dx + ay * dy + az * dz, m = mass[j] * w, f = -3 * m * along * s;
        const double px = m * ax + f * dx, py = m * ay + f * dy, pz = m * az + f * dz;
        d_mass[j] += w * along;
        bx[j] += px; by[j] += py; bz[j] += pz;
        ox += px; oy += py; oz += pz;
      }
      bx[i] -= ox; by[i] -= oy; bz[i] -= oz;
    }
  }
  for (long i = 0; i < n; i++)
    for (long c = 0; c < 3; c++) { d_place[3 * i + c] = back[c * n + i]; d_speed[3 * i + c] = ds[c * n + i]; }
  free(all);
  return value;
}
