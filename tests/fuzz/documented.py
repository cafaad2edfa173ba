"""The differences between compiled calls and NumPy's that are known: each stands in ``docs/limits.md``."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.fuzz.calling import Difference


class Known(NamedTuple):
    """Calls whose last line matches ``code``, with a difference of a kind that matches ``kind``, and why."""

    code: str
    kind: str
    reason: str


DOCUMENTED = [
    Known(
        r"einsum|vecdot|vecmat|matvec|matmul|inner|dot|@|linalg\.|polyfit|tensordot|kron|corrcoef|cov|norm",
        "bits",
        "products of strided or mixed operands and LAPACK on other layouts: the order of operations is another",
    ),
    Known(r"where=|initial=|logaddexp|\.at\(", "bits", "sums with where= or initial=, logaddexp.reduce, add.at"),
    Known(
        r"einsum|dot|inner|@|mat(mul|vec)|vec(mat|dot)|convolve|correlate|cov|trapezoid",
        "value",
        "the same, where nan and infinities mix",
    ),
    Known(
        r"(\.copy\(|out=|atan2\(|arctan2\().*\[::-1\]",
        "bits",
        "NumPy's loops run otherwise over memory that runs backwards",
    ),
    Known(
        r"dtype=np\.u?int.*complex\(.*(nan|inf)|complex\(.*(nan|inf).*astype\(np\.u?int",
        "value",
        "nan and infinities as integers: whatever C gives",
    ),
    Known(r"np\.uint.*dtype=np\.complex", "value", "negative parts as unsigned integers: whatever C gives"),
    Known(
        r"np\.u?int(8|16|32|64)|np\.full_like|= 0\.0",
        "no exception: (OverflowError|ValueError: cannot convert float NaN.*)",
        "a Python number that a later call, or an array of numbers, casts to integers that cannot hold it",
    ),
    Known(
        r"broadcast_to.*|copy=False|overwrite_input",
        "no exception: ValueError: (partition array|assignment destination|Unable to avoid copy).*",
        "arguments are writable copies in a trace",
    ),
    Known(
        r"(astype|ascontiguousarray|[hvd]split|tri[lu]_indices_from)\(t0",
        "no exception: TypeError: Input should.*|another exception: AttributeError",
        "lists count as arrays",
    ),
    Known(
        r"\[.*\] = ",
        "another exception: (TypeError|OverflowError|ValueError)",
        "the index is looked at before the value",
    ),
    Known(
        r"(prod\(.*(initial|where)=|multiply\.reduceat).*complex\(.*(nan|inf)",
        "value",
        "1+0j times infinity has nan in it",
    ),
    Known(r"unique\(.*sorted=False", "value|structure", "the distinct values are sorted"),
    Known(r"fft\.ifft2\(.*out=", "dtype|value|type|bits", "NumPy's ifft2 does not write into out="),
    Known(
        r"fft\.(i?hfft|i?r?fft)\(.*out=",
        "dtype|value|type|raises",
        "hfft and ihfft do not write into out=; the others compute in its precision",
    ),
    Known(r"fft\.i?r?fft(2|n)\(.*out=", "dtype|value|bits", "NumPy writes each step into out=, also smaller ones"),
    Known(r"nansum\(.*axis=\(\).*out=", "type", "a sum along no axis of a number into out= is a number"),
    Known(r"nan(min|max)\(.*(where|initial)=.*\[", "value", "NumPy gives nan for a list of which nothing is left"),
    Known(r"linalg\.(eigh|svd)\(.*complex", "slope", "phases of vectors are LAPACK's"),
    Known(r"clip\(.*complex.*nan", "value", "which of two stays, where complex numbers have nan in one part"),
    Known(r"(fmax|fmin|maximum|minimum)\.(reduce|accumulate).*-0\.0", "bits", "which zero stays: 0.0 or -0.0"),
    Known(
        r"(power|pow|float_power|arctan2|atan2|logaddexp2?|copysign|nextafter|hypot|fmod|remainder|mod|divide|"
        r"true_divide|floor_divide|subtract|heaviside|ldexp)\.(reduce|reduceat|accumulate)",
        "bits|value",
        "reduced from the left, where NumPy's loops take several elements at a time",
    ),
    Known(
        r"(arctan2|atan2|hypot|pow|power|float_power|logaddexp2?)\.(reduce|reduceat|accumulate)",
        "slope",
        "the slope of what is reduced from the left",
    ),
    Known(r"math\.", "bits|no exception|another exception", "math functions are NumPy's: last bits, nan for an error"),
    Known(r"math\.|float\(|int\(", "(derivative )?raises", "math functions of NumPy's complex numbers"),
    Known(r"unique_values", "value", "the distinct values are sorted; NumPy's order is that of a hash table"),
    Known(r"logspace|geomspace|polydiv", "bits|value", "powers and quotients are computed by other formulas"),
    Known(r"histogram\(.*weights=", "bits", "the weights of a bin are differences of running sums"),
    Known(r"ravel_multi_index|unravel_index", "no exception", "places out of bounds at a later call"),
    Known(r"linspace|interp|gradient", "bits", "the order of operations is another"),
    Known(r"^np\.\w+\(|^[tg]\d+\.\w+\(", "no exception: AttributeError", "lists and Python numbers count as arrays"),
    Known(r"gradient", "value", "traced coordinates count as uneven: nan where they coincide"),
    Known(r"insert\(", "raises", "values of more axes than the array"),
    Known(r"interp\(.*(nan|inf|complex)", "value", "nan and infinities among the values; complex periods and ends"),
    Known(r"linspace.*(nan|inf)", "value", "infinite complex ends"),
    Known(r"broadcast_to", "bits", "sums and products over stretched arrays: the order of operations is another"),
    Known(r"scipy\.linalg\.norm.*broadcast_to", "value", "the same, of single precision"),
    Known(
        r"complex.*(abs|square|\*|polyval|polymul|prod)|(abs|square|\*|polyval|polymul|prod).*complex",
        "bits",
        "products of complex numbers",
    ),
    Known(r"nan(sum|mean|var|std)\(.*complex.*\.T", "bits", "the order in which a transposed array is added up"),
    Known(r"\.reduce\(.*dtype=.*out=", "value", "NumPy's own answer is another one where out= has another dtype"),
    Known(r"union1d|unique", "bits", "which of equal numbers stays: 0.0 or -0.0, kinds of nan"),
    Known(r"clip\(", "bits", "which zero stays: 0.0 or -0.0"),
    Known(r"quantile\(.*inf", "value", "levels 0 and 1 as ints, at which NumPy does not interpolate"),
    Known(r"(quantile|percentile)\(.*float(16|32)", "value", "levels of other precisions count as doubles"),
    Known(r"trim_zeros|diff\(.*n=0", "structure", "lists count as arrays"),
    Known(r"scipy\.ndimage.*(nan|inf)", "value", "nan and infinities spread otherwise"),
    Known(r"scipy\.fft\..*(nan|inf)", "value", "zeros beside nan and infinities have other signs"),
    Known(r"scipy\.linalg\.(qr|det)", "value", "factors of singular matrices; single precision is computed in double"),
    Known(r"fftconvolve.*float32", "value|bits", "single precision is computed in double"),
    Known(r"scipy\.fft\.", "(derivative )?raises|another exception", "no points along an axis; missing axes"),
    Known(r"linalg\.cond", "raises", "singular matrices have no condition by the inverse"),
    Known(r"cov\(.*weights=", "no exception: ZeroDivisionError.*", "weights that sum to zero give nan"),
    Known(
        r"logsumexp|log_softmax",
        "no exception: (IndexError|ValueError: zero-size).*",
        "of nothing, where SciPy fails on its way",
    ),
    Known(r"scipy\.\w+\.", "raises", "empty arrays; nan and infinities in factorizations"),
]


def documented(difference: Difference) -> str | None:
    """The reason for a known difference; None for a new one."""
    call = difference.call
    code = "; ".join([*call.lines, *(text for operand in call.operands.values() for text in operand.texts)])
    for known in DOCUMENTED:
        if re.search(known.code, code) and re.match(f"({known.kind})(,|:|$)", difference.kind):
            return known.reason
    return None
