"""Methods, attributes and operators of ndarray on traced arrays: NumPy's results, also with their options."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.functions import assert_same, outcome

X = np.array([[0.3, -1.2, 2.0], [1.5, 0.2, -0.4]])
CALLS = [
    "x.sum(0,np.float32)", "x.sum(axis=(0,1),keepdims=True)", "x.sum(initial=2.0,where=x>0)",
    "x.mean(1,None,None,True)", "x.max(initial=5.0)", "x.max(1,keepdims=True)", "x.min(0,out=np.zeros(3))",
    "x.argmax()", "x.argmax(1,keepdims=True)", "x.std(ddof=1)", "x.var(0,keepdims=True)", "x.cumsum()",
    "x.cumsum(1,np.float32)", "x.cumprod(0)", "x.clip(0)", "x.clip(max=0.5)", "x.clip(min=np.zeros(3))",
    "x.round(1)", "x.round(decimals=-1)", "x.repeat([1,2],0)", "x.repeat(2)", "x.take([0,1],1)",
    "x.take([5,-7],mode='wrap')", "x.take(1)", "x.reshape(3,-1)", "x.reshape((6,),order='F')", "x.ravel('F')",
    "x.flatten('F')", "x.transpose(1,0)", "x.transpose((1,0))", "x.T", "x.swapaxes(0,1)", "x.squeeze()",
    "x[None].squeeze(0)", "x.diagonal(1)", "x.trace(1)", "x.dot(x.T)", "x.dot([1.,2.,3.])", "x.astype(int)",
    "x.astype('f4')", "x.astype(complex)", "x.astype(np.float64,copy=False)", "x.copy('F')", "x.any(1)",
    "x.all(axis=0,keepdims=True)", "x.nonzero()", "x.argsort(axis=None)", "x.argsort(0,kind='stable')",
    "x.argpartition(1,axis=1)[:,1]", "x[0].searchsorted(0.1)", "x.compress([0,1],1)", "x.choose([1,2])",
    "x.conj()", "x.prod(1)", "x.ptp()", "x.tolist()", "x.item(4)", "x.item((1,2))", "x.item(0,1)", "x[0,0].item()",
    "x.__len__()", "x.ndim", "x.shape", "x.itemsize", "x.nbytes", "x.size", "x.dtype", "list(x.flat)",
    "x.flat[::2]", "x.real", "x.imag", "x.mT", "abs(x)", "-x", "+x", "x**2", "2**x", "x//0.5", "x%0.7",
    "divmod(x,0.5)", "x@x.T", "x>0", "(x>0)&(x<1)", "~(x>0)", "x.__contains__(0.3)", "0.3 in x", "x==x",
    "round(x[0,0],1)", "x[0].max()", "x.__array_namespace__() is np", "x.device", "x.to_device('cpu')", "x.view()",
    "x.fill(2.0)", "x.sort()", "x.sum(axis=2)", "x.reshape(4)", "x.mean(axis='a')", "np.asarray(x).sum()",
    "float(x[0,0])", "int(x[0,1])", "bool(x[0,0]>0)", "complex(x[0,0])", "x.sum().item()", "x.sum(dtype=complex)",
    "x.T.ravel(order='K')", "x.T.ravel(order='A')", "x.T.flatten()", "x.T.reshape(-1)", "x.reshape(-1,order='A')",
]  # fmt: skip


def plain(value: Any) -> Any:
    return tuple(map(plain, value)) if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("call", CALLS)
def test_members_are_those_of_ndarray(call: str) -> None:
    program = eval(f"lambda x: {call}", {"np": np})
    compiled = rg.jit(program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in (X, X[::-1] * 1.5):
            expected, found = (outcome(f, [np.array(x)]) for f in (program, compiled))
            assert_same(plain(found), plain(expected), 1e-13)
