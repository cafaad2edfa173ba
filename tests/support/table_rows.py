"""The rows of the table of NumPy."""

from __future__ import annotations

from .sampling import between, distinct, nonzero, off_integers, positive
from .table import ROWS, rows

__all__ = ["ROWS"]

# --- elementwise -------------------------------------------------------------------------------------------

rows("""
    np.sin np.cos np.sinh np.cosh np.tanh np.exp np.exp2 np.expm1 np.arctan np.atan np.arcsinh np.asinh np.square
    np.negative np.positive np.conj np.conjugate np.real np.imag np.real_if_close np.sinc np.deg2rad np.radians
    np.rad2deg np.degrees np.i0 np.nan_to_num
    np.add(x, y)
    np.subtract(x, y)
    np.multiply(x, y)
    np.logaddexp(x, y)
    np.logaddexp2(x, y)
    np.where(x > 0.1, x, y)
    np.select([x > 0.5, x > -0.5], [x, y], 0.5)
    np.choose([0, 1, 0], [v, w])
    np.piecewise(v, [v < 0, v >= 0], [np.sin, np.cos])
    np.vectorize(lambda e: e * e + 1)(x)
    np.vectorize(lambda e, f: e * f)(x, y)
    np.vectorize(np.inner, signature='(n),(n)->()')(x, y)
    np.frompyfunc(lambda e: e * e, 1, 1)(np.atleast_1d(x)).astype(x.dtype)
    np.unwrap(v)
""")
rows(
    """
    np.abs np.absolute np.fabs np.angle np.reciprocal np.cbrt
    np.divide(x, y)
    np.true_divide(x, y)
    np.arctan2(x, y)
    np.atan2(x, y)
    np.hypot(x, y)
    np.copysign(x, y)
    np.heaviside(x, y)
""",
    nonzero,
)
rows(
    """
    np.sqrt np.log np.log2 np.log10 np.log1p
    np.power(x, y)
    np.pow(x, y)
    np.float_power(x, y)
""",
    positive,
)
rows("np.tan np.arcsin np.asin np.arccos np.acos np.arctanh np.atanh", between(-0.7, 0.7))
rows("np.arccosh np.acosh", between(1.3, 3.0))
rows(
    """
    np.maximum(x, y + 0.2)
    np.minimum(x, y + 0.2)
    np.fmax(x, y + 0.2)
    np.fmin(x, y + 0.2)
    np.clip(x, -0.5, 0.5)
    np.clip(x, y + 0.2, 3.0)
""",
    distinct,
    simple=True,
)
rows(
    """
    np.remainder(x, y)
    np.mod(x, y)
    np.fmod(x, y)
    np.divmod(x, y)
""",
    between(1.1, 1.4),
)
rows(
    """
    np.modf np.frexp
    np.ldexp(x, 2)
    np.nextafter(x, 7.0)
""",
    between(1.1, 1.4),
)

# --- zero derivatives --------------------------------------------------------------------------------------

rows(
    """
    np.floor np.ceil np.trunc np.rint np.fix np.round np.around np.signbit np.isfinite np.isinf np.isnan np.isneginf
    np.isposinf np.iscomplex np.isreal np.logical_not
    np.round(x, 1)
    np.floor_divide(x, y)
    np.spacing(x)
    np.equal(x, y)
    np.not_equal(x, y)
    np.less(x, y)
    np.less_equal(x, y)
    np.greater(x, y)
    np.greater_equal(x, y)
    np.logical_and(x, y)
    np.logical_or(x, y)
    np.logical_xor(x, y)
    np.isclose(x, y)
    np.allclose(x, y)
    np.array_equal(x, y)
    np.array_equiv(x, y)
    np.all(x, axis=0)
    np.any(x, axis=0)
    np.count_nonzero(x, axis=0)
    np.argmax(x, axis=0)
    np.argmin(x, axis=0)
    np.nanargmax(x, axis=0)
    np.nanargmin(x, axis=0)
    np.argsort(x, axis=0)
    np.argpartition(v, 1)
    np.lexsort((v, w))
    np.searchsorted([-1.0, 0.0, 1.0], x)
    np.digitize(x, [-1.0, 0.0, 1.0])
    np.isin(x, [0.5, 1.0])
    np.nonzero(x)
    np.flatnonzero(x)
    np.argwhere(x)
    np.ones_like(x)
    np.zeros_like(x)
    np.full_like(x, 2.0)
    x.all(axis=0)
    x.any(axis=0)
    x.argmax(axis=0)
    x.argmin(axis=0)
    x.argsort(axis=0)
    v.argpartition(1)
    x.nonzero()
    x.round()
    v.searchsorted(v)
    np.linalg.matrix_rank(x)
    np.ravel_multi_index((np.argsort(v), np.argsort(v)), (3, 3))
    np.unravel_index(np.argsort(v), (3, 1))
    np.diag_indices_from(a)
    np.tril_indices_from(x)
    np.triu_indices_from(x)
    np.ix_(np.argsort(v))
    np.bitwise_and(np.argsort(v), 1)
    np.bitwise_or(np.argsort(v), 1)
    np.bitwise_xor(np.argsort(v), 1)
    np.bitwise_invert(np.argsort(v))
    np.bitwise_not(np.argsort(v))
    np.invert(np.argsort(v))
    np.bitwise_left_shift(np.argsort(v), 1)
    np.bitwise_right_shift(np.argsort(v), 1)
    np.left_shift(np.argsort(v), 1)
    np.right_shift(np.argsort(v), 1)
    np.bitwise_count(np.argsort(v))
    np.gcd(np.argsort(v), 6)
    np.lcm(np.argsort(v), 6)
""",
    off_integers,
    derivative="zero",
)
rows("np.sign(x)", nonzero, remark="zero for real numbers; of a complex one x/|x|, which has a derivative")
rows(
    """
    np.shape np.ndim np.size np.iscomplexobj np.isrealobj np.isscalar np.result_type np.common_type
    np.can_cast(np.float32, np.float64)
    np.broadcast_shapes((2, 1), (3,))
    np.may_share_memory(x, x)
    np.shares_memory(x, x)
    x.shape
    x.ndim
    x.size
    x.dtype
    x.device
    x.itemsize
    x.nbytes
    np.empty_like(x).shape
    np.iterable(x)
""",
    derivative="facts",
)

# --- reductions, cumulative operations, sorting ------------------------------------------------------------

rows("""
    np.sum(x, axis=0)
    np.prod(x, axis=0)
    np.mean(x, axis=0)
    np.average(x, axis=1, weights=[1.0, 2.0, 3.0])
    np.var(x, axis=1)
    np.std(x, axis=1)
    np.nansum(x, axis=0)
    np.nanprod(x, axis=0)
    np.nanmean(x, axis=0)
    np.nanvar(x, axis=1)
    np.nanstd(x, axis=1)
    np.cumsum(x, axis=1)
    np.cumprod(x, axis=1)
    np.cumulative_sum(x, axis=1)
    np.cumulative_prod(x, axis=1, include_initial=True)
    np.nancumsum(x, axis=1)
    np.nancumprod(x, axis=1)
    np.diff(x, axis=1)
    np.ediff1d(x)
    np.gradient(x, axis=1)
    np.trapezoid(x, axis=1)
    np.cov(x)
    np.corrcoef(x)
    np.bincount([0, 2, 1], v)
    np.bincount(np.argsort(v), w)
    np.add.reduce(x, axis=0)
    np.multiply.reduce(x, axis=0)
    np.subtract.reduce(x, axis=0)
    np.hypot.reduce(x, axis=0)
    np.logaddexp.reduce(x, axis=0)
    np.add.accumulate(x, axis=1)
    np.multiply.accumulate(x, axis=1)
    np.subtract.accumulate(x, axis=1)
    np.add.reduceat(x, [0, 1], axis=1)
    np.multiply.reduceat(x, [1, 0], axis=1)
    np.multiply.outer(v, w)
    np.apply_along_axis(np.cumsum, 1, x)
    np.apply_over_axes(np.sum, x, [0, 1])
    x.sum(axis=0)
    x.prod(axis=0)
    x.mean(axis=0)
    x.var(axis=1)
    x.std(axis=1)
    x.cumsum(axis=1)
    x.cumprod(axis=1)
""")
rows(
    """
    np.max(x, axis=0)
    np.min(x, axis=0)
    np.amax(x, axis=0)
    np.amin(x, axis=0)
    np.ptp(x, axis=0)
    np.nanmax(x, axis=0)
    np.nanmin(x, axis=0)
    np.median(x, axis=0)
    np.nanmedian(x, axis=0)
    np.quantile(x, 0.3, axis=0)
    np.quantile(x, 0.4, axis=1, method='inverted_cdf')
    np.nanquantile(x, 0.3, axis=0)
    np.percentile(x, 30, axis=0)
    np.nanpercentile(x, 30, axis=0)
    np.sort(x, axis=0)
    np.sort_complex(v)
    np.unique(v)
    np.unique_values(v)
    np.unique_counts(v)
    np.unique_inverse(v)
    np.unique_all(v)
    np.union1d(v, w)
    np.intersect1d(v, v[:2])
    np.setdiff1d(v, v[:2])
    np.setxor1d(v, v[:2])
    np.partition(v, 1)
    (o := np.copy(v), o.partition(1), np.sort(o[1:]))[2]
    np.maximum.reduce(x, axis=0)
    np.minimum.accumulate(x, axis=1)
    np.maximum.reduceat(x, [0, 1], axis=1)
    x.max(axis=0)
    x.min(axis=0)
    x.clip(-0.5, 0.5)
""",
    distinct,
    simple=True,
)

rows(
    """
    np.histogram(v, 3, (-2.0, 2.0), weights=w)[0]
    np.histogram(v, 3, density=True)[1]
    np.histogram_bin_edges(v, 3)
""",
    distinct,
    simple=True,
    refused="FD",
)

# --- shapes, joining, picking, writing ---------------------------------------------------------------------

rows("""
    np.reshape(x, (-1,))
    np.ravel(x)
    np.transpose(x)
    np.permute_dims(x, (1, 0))
    np.matrix_transpose(x)
    np.swapaxes(x, 0, 1)
    np.moveaxis(x, 0, 1)
    np.rollaxis(x, 1)
    np.squeeze(x)
    np.expand_dims(x, 1)
    np.atleast_1d np.atleast_2d np.atleast_3d
    np.broadcast_to(x, (2, 2, 3))
    np.lib.stride_tricks.sliding_window_view(x, 2, 1)
    np.lib.stride_tricks.sliding_window_view(x, (2, 2))
    np.lib.stride_tricks.sliding_window_view(v, (2, 2), (0, 0))
    np.broadcast_arrays(x, y)
    np.flip(x, axis=0)
    np.fliplr np.flipud np.rot90
    np.roll(x, 1, axis=1)
    np.tile(x, 2)
    np.repeat(x, 2, axis=1)
    np.resize(x, (3, 3))
    np.concatenate([x, y])
    np.concat([x, y])
    np.stack([x, y])
    np.hstack([x, y])
    np.vstack([x, y])
    np.trim_zeros(np.concatenate([[0.0], v, [0.0]]))
    np.row_stack([x, y])
    np.dstack([x, y])
    np.column_stack([v, w])
    np.block([[x, y], [y, x]])
    np.append(x, y)
    np.split(v, [1])
    np.array_split(v, 2)
    np.hsplit(x, [1])
    np.vsplit(x, [1])
    np.dsplit(t, [1])
    np.unstack(x)
    np.insert(v, 1, 0.5)
    np.delete(v, 1)
    np.pad(x, 1)
    np.meshgrid(v, w)
    np.tril np.triu
    np.diag(v)
    np.diagflat(x)
    np.diagonal(x)
    np.trace(x)
    np.take(v, [2, 0])
    np.take_along_axis(x, np.argsort(x, axis=1), 1)
    np.compress([True, False], x, axis=0)
    np.extract([True, False, True], v)
    np.array([v, w])
    np.asarray(x)
    np.copy(x)
    np.astype(x, np.complex128)
    np.full((2, 2), s)
    np.full_like([1.0, 2.0], s, complex)
    np.linspace(s, 2.0, 4)
    np.logspace(s, 0.5, 4)
    np.r_[v, 1.0, w]
    np.c_[v, w]
    x.reshape(-1)
    x.ravel()
    x.flatten()
    x.transpose()
    x.T
    x.mT
    x.real
    x.imag
    x.swapaxes(0, 1)
    x.squeeze()
    x.repeat(2)
    v.take([2, 0])
    x.diagonal()
    x.trace()
    x.compress([True, False], axis=0)
    x.astype(np.complex128)
    x.copy()
    x.conj()
    x.conjugate()
    x.tolist()
    x.item(0)
    x.view()
    x.to_device('cpu')
    x.flat[1]
    v.dot(w)
    v.choose([v, w])
""")
rows("""
    (o := np.copy(x), np.fill_diagonal(o, v[0]))[0]
    (o := np.copy(x), np.put_along_axis(o, np.argsort(x, axis=1), y, 1))[0]
    (o := np.copy(x), np.put(o, [0, 2], v[:2]))[0]
    (o := np.copy(x), np.place(o, x > 0, v))[0]
    (o := np.copy(x), np.putmask(o, x > 0, y))[0]
    (o := np.copy(x), np.copyto(o, y, where=x > 0))[0]
    (o := np.copy(x), np.add.at(o, ([0, 0], [1, 1]), v[:2]))[0]
    (o := np.copy(x), np.add(o, y, out=o, where=x > 0))[0]
    (o := np.copy(x), o.sort())[0]
    (o := np.copy(x), o.fill(s))[0]
    (o := np.copy(x), o.put([0], s))[0]
""")
rows("np.geomspace(s, 4.0, 4)", positive, refused="FD")
rows("""
    np.interp(v, [-2.0, 0.0, 2.0], w)
    np.vander(v, 3)
    np.convolve(v, w)
    np.correlate(v, w)
    np.polyval(v, x)
    np.polyadd(v, w)
    np.polysub(v, w)
    np.polymul(v, w)
    np.polynomial.polynomial.polyval(x, v)
    np.polynomial.chebyshev.chebval(x, v)
    np.polynomial.legendre.legval(x, v)
    np.polynomial.hermite.hermval(x, v)
    np.polynomial.hermite_e.hermeval(x, v)
    np.polynomial.laguerre.lagval(x, v)
    np.polyder(v)
    np.polyint(v)
    np.poly(v)
""")
rows(
    """
    np.polydiv(w, v[:2])
    np.polyfit([0.0, 1.0, 2.0], v, 1)
    np.roots(v)
""",
    positive,
)

# --- products and linear algebra ---------------------------------------------------------------------------

rows(
    """
    np.dot(x, q)
    np.matmul(x, q)
    np.inner(x, y)
    np.outer(v, w)
    np.vdot(v, w)
    np.vecdot(x, y)
    np.matvec(x, v)
    np.vecmat(v, q)
    np.tensordot(x, q, 1)
    np.einsum('ij,jk->ki', x, q)
    np.kron(v, x)
    np.cross(v, w)
    np.linalg.matmul(x, q)
    np.linalg.outer(v, w)
    np.linalg.vecdot(x, y)
    np.linalg.cross(v, w)
    np.linalg.tensordot(x, q, axes=1)
    np.linalg.trace(x)
    np.linalg.diagonal(x)
    np.linalg.matrix_transpose(x)
    np.linalg.multi_dot([x, q, np.ones((4, 2))])
    np.linalg.matrix_power(a, 3)
    np.linalg.norm(x)
    np.linalg.norm(x, 1, axis=0)
    np.linalg.norm(x, 3, axis=1)
    np.linalg.norm(x, 'nuc')
    np.linalg.norm(x, 2)
    np.linalg.matrix_norm(x)
    np.linalg.vector_norm(x)
    np.linalg.inv(a)
    np.linalg.inv(c)
    np.linalg.solve(a, q)
    np.linalg.solve(a, v)
    np.linalg.det(a)
    np.linalg.slogdet(a)
    np.linalg.cond(a)
    np.linalg.cholesky(h)
    np.linalg.qr(a)
    np.linalg.pinv(x)
    np.linalg.lstsq(a, v)[0]
    np.linalg.svdvals(x)
    np.linalg.svd(x, full_matrices=False)[1]
    np.linalg.eigvalsh(h)
    np.linalg.eigh(h)[0]
    np.linalg.eigvals(a)
    np.linalg.eig(a)[0]
    np.linalg.tensorsolve(a, v)
    np.linalg.tensorinv(a, 1)
""",
    simple=True,
)

# --- Fourier transforms ------------------------------------------------------------------------------------

rows(
    """
    np.fft.fft np.fft.ifft np.fft.fft2 np.fft.ifft2 np.fft.fftn np.fft.ifftn np.fft.rfft np.fft.rfft2 np.fft.rfftn
    np.fft.irfft np.fft.irfft2 np.fft.irfftn np.fft.hfft np.fft.ihfft np.fft.fftshift np.fft.ifftshift
    np.fft.fft(x, 5, axis=0, norm='ortho')
    np.fft.fftfreq(4, s)
    np.fft.rfftfreq(4, s)
""",
    positive,
)
