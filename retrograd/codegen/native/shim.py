"""The functions of an extension module around kernels: they take Python's objects and make the results.

A call with operands of other types or shapes than those of the kernel runs the NumPy function instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from ...ir.graph import Graph, Value
from .indices import c_type
from .kernel_function import KernelFunction

MADE = {"b": "PyBool_FromLong", "f": "PyFloat_FromDouble", "i": "PyLong_FromLongLong"}  # Python's numbers
PYTHONS = {"f": "is_float", "c": "is_complex", "i": "is_int"}  # tests of Python's numbers that are traced
KINDS = {"f8": "F8", "f4": "F4", "i8": "I8", "b1": "B1", "c16": "C16", "c8": "C8"}
SUMS = re.compile(r"\brg_(total|add_rows)\w*\(|\bstruct rg_sum")  # comments have neither brackets nor spaces
FLOAT = re.compile(r"\bfloat\b")
ROUNDS = '#pragma GCC optimize("no-tree-slp-vectorize") /* with it, GCC 12 makes x of (double)(float)x, for pairs */'
SHARED = ("threads", "sums", "server")  # what modules share
ALONE = 50_000  # additions from which other threads of Python's may run meanwhile
STACK = 2**14  # bytes of workspace up to which it is on the stack
ALIGNED = 64  # bytes to which workspaces are aligned
KEPT = 2**26  # bytes of workspace up to which a kernel keeps it for the next call


@cache
def header(name: str) -> str:
    """A file of this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def definitions(name: str) -> str:
    """What of the source is the same in all modules that have this of what they share."""
    return header(f"{name}.c")


def shared_source(name: str) -> str:
    """The source of an object file with what modules share."""
    return "\n".join([header("abi.h"), header(f"{name}.h"), definitions(name)])


def kept_text(name: str, text: str) -> str:
    """The source of a text that linkers keep though nothing reads it, so that a file can be known by it."""
    return f'__attribute__((used, visibility("default"))) const char {name}[] = "{text}";\n'


def extension(bodies: Sequence[Graph], kernels: Sequence[KernelFunction]) -> str:
    """The source of an extension module with the functions ``k0``, ``k1``, ... for kernels."""
    n = len(bodies)
    table = ", ".join(f"&fallback{k}" for k in range(n))
    methods = "".join(f'{{"k{k}", call{k}, 0x80, ""}}, ' for k in range(n))
    serves = n == 1 and len(bodies[0].inputs) > 0
    methods += '{"server", server, 8, ""}, {"served", served, 8, ""}, {"bind", bind, 8, ""}, ' if serves else ""
    keeping = [k for k, kernel in enumerate(kernels) if STACK < _total(kernel) <= KEPT]
    methods += '{"keep", keep, 0x80, ""}, ' if keeping else ""
    parts = any(kernel.parts for kernel in kernels)
    methods += '{"share", share, 0x80, ""}, ' if parts else ""
    sums = any(SUMS.search(kernel.source) for kernel in kernels)
    shared = [name for name, on in zip(SHARED, (parts, sums, serves), strict=True) if on]
    floats = any(FLOAT.search(kernel.source) for kernel in kernels)
    return "\n".join(
        [
            *([ROUNDS] if floats else ()),
            f"#define KERNELS {n}",
            "typedef struct PyObject PyObject;",
            *(f"static PyObject *fallback{k};" for k in range(n)),
            f"static PyObject **fallbacks[] = {{{table}}};",
            header("abi.h"),
            header("functions.h"),
            header("further_functions.h"),
            header("complex_numbers.h"),
            *(header(f"{name}.h") for name in shared),
            header("setup.h"),
            *(line for k in range(n) for line in _kernel(k, bodies[k], kernels[k])),
            *(_keep(keeping) if keeping else ()),
            *(_server(bodies[0]) if serves else ()),
            *(_bound(bodies[0], kernels[0]) if serves else ()),
            *map(definitions, shared),
            f'static Method methods[] = {{{methods}{{"setup", setup, 0x80, ""}}, {{0, 0, 0, 0}}}};',
            'static Definition module = {{1, 0}, 0, 0, 0, "rg_native", 0, -1, methods, 0, 0, 0, 0};',
            '__attribute__((visibility("default"))) PyObject *PyInit_rg_native(void);',
            "PyObject *PyInit_rg_native(void) { return PyModule_Create2(&module, 3); }",
            "",
        ]
    )


def workspace(kernel: KernelFunction) -> tuple[int, bool]:
    """The bytes that a call takes beside its results and the stack, and whether the kernel keeps them."""
    total = _total(kernel)
    return (total + ALIGNED if total > STACK else 0), total <= KEPT


def _total(kernel: KernelFunction) -> int:
    return sum(-(-size // ALIGNED) * ALIGNED for size in kernel.workspaces)


def _kernel(k: int, body: Graph, kernel: KernelFunction) -> list[str]:
    nin, nout, extra = len(body.inputs), len(body.outputs), len(kernel.workspaces)
    over = dict(kernel.over)
    lines = ["", kernel.source, "", *_run(k, kernel, nin + nout)]
    lines += [f"static PyObject *call{k}(PyObject *self, PyObject *const *a, int64_t n) {{"]
    lines += [
        f"  void *p[{max(1, nin + nout + extra)}]; PyObject *o[{max(1, nout)}] = {{0}}, *c[{max(1, nin)}] = {{0}};"
    ]
    lines += [f"  PyObject *result = 0; if (n != {nin}) goto other;"]
    for i, v in enumerate(body.inputs):
        lines.append(f"  {_taken(i, v)} goto other;")
    for i, v in enumerate(body.outputs):
        lines.append(f"  {_made(i, v, nin + i, over.get(i))}")
    lines += [f"  const int beyond = run{k}(p);", "  if (beyond < 0) goto end;", "  if (beyond) goto other;"]
    lines += [f"  {_given(i, v)}" for i, v in enumerate(body.outputs)]
    if nout == 1:
        lines += ["  result = o[0]; o[0] = 0;"]
    else:
        lines += [f"  if (!(result = PyTuple_New({nout}))) goto end;"]
        lines += [f"  PyTuple_SetItem(result, {i}, o[{i}]); o[{i}] = 0;" for i in range(nout)]
    lines += ["  goto end;", "other:", f"  result = PyObject_Vectorcall(fallback{k}, a, n, 0);", "end:"]
    lines += [f"  for (int k = 0; k < {nout}; k++) if (o[k]) Py_DecRef(o[k]);"]
    lines += [f"  for (int k = 0; k < {nin}; k++) if (c[k]) Py_DecRef(c[k]);", "  return result;", "}"]
    return lines


def _run(k: int, kernel: KernelFunction, first: int) -> list[str]:
    """What runs a kernel on operands and results: 1 if it gives up or there is no memory, -1 for an error."""
    total, released = _total(kernel), kernel.work > ALONE
    lines = [f"static int run{k}(void **p) {{"]
    lines += ["  const int64_t threads = allowed(); if (threads < 0) return -1;"] * kernel.parts
    if total:
        lines += _workspaces(k, kernel, first, total)
    lines += ["  void *others = PyEval_SaveThread();"] * released
    lines += [f"  const int beyond = kernel{k}(p{', threads' * kernel.parts});"]
    lines += ["  PyEval_RestoreThread(others);"] * released
    if total > STACK:
        end = "given_back(work);"
        if total <= KEPT:
            end = f"if (work == kept{k}) {{ busy{k} = 0; if (!keeps) free_kept{k}(); }} else given_back(work);"
        lines.append(f"  {end}")
    lines += ["  return beyond != 0;", "}"]
    if STACK < total <= KEPT:
        free = f"static void free_kept{k}(void) {{ if (!busy{k}) {{ given_back(kept{k}); kept{k} = 0; }} }}"
        lines[:0] = [f"static char *kept{k}; static int busy{k};", free]
    return lines


def _keep(keeping: Sequence[int]) -> list[str]:
    """The function that tells kernels whether to keep workspaces for the next call, or to free what they have."""
    return [
        "",
        "static PyObject *keep(PyObject *self, PyObject *const *a, int64_t n) {",
        "  if (n != 1) return 0;",
        "  keeps = PyLong_AsLongLong(a[0]) != 0;",
        *(f"  if (!keeps) free_kept{k}();" for k in keeping),
        "  return PyLong_FromLongLong(keeps);",
        "}",
    ]


def _server(body: Graph) -> list[str]:
    """The function that serves whole calls of a module with one kernel, and its tests of arguments."""
    tests = [f"  if (n > {i} && !{_fits(i, v)}) return 0;" for i, v in enumerate(body.inputs)]
    n, results = len(body.inputs), len(body.outputs)
    return [
        *("", "static int fits0(PyObject *const *a, int64_t n) {", *tests, "  return 1;", "}"),
        "static PyObject *serve0(PyObject *state, PyObject *const *a, int64_t n) {",
        f"  PyObject *x[{n}] = {{0}};",
        f"  return serve(state, a, n, x, {n}, {results}, fits0, call0);",
        "}",
        'static Method serving = {"serve", serve0, 0x80, ""};',
        "static PyObject *server(PyObject *self, PyObject *state) { return server_of(&serving, state); }",
        "static PyObject *served(PyObject *self, PyObject *state) { return served_type(state); }",
        "",
    ]


def _bound(body: Graph, kernel: KernelFunction) -> list[str]:
    """The function that runs a module's only kernel on arrays which stay where they are."""
    values = (*body.inputs, *body.outputs)
    n = len(values)
    tests = [
        f"  if (!(p[{i}] = there(ITEM(state, ARRAYS + {i}), {v.aval.ndim}, {_dims(v)}, {_kind(v)}))) goto other;"
        for i, v in enumerate(values)
    ]
    return [
        "static PyObject *bound0(PyObject *state, PyObject *nothing) {",
        f"  void *p[{n + len(kernel.workspaces)}]; if (!stands(state)) goto other;",
        *tests,
        "  const int beyond = run0(p); if (beyond < 0) return 0;",
        "  if (!beyond) { PyObject *results = ITEM(state, RESULTS); Py_IncRef(results); return results; }",
        "other:",
        "  return PyObject_CallNoArgs(ITEM(state, OTHERWISE));",
        "}",
        'static Method binding = {"run", bound0, 4, ""};',
        f"static PyObject *bind(PyObject *self, PyObject *state) {{ return bound_to(&binding, state, {n}); }}",
        "",
    ]


def _fits(i: int, value: Value) -> str:
    if value.aval.kind == "array":
        return f"is_array(a[{i}], {value.aval.ndim}, {_dims(value)}, {_kind(value)})"
    if value.aval.kind == "scalar":
        return f"is_scalar(a[{i}], {_kind(value)})"
    return f"{PYTHONS[value.aval.dtype.kind]}(a[{i}])" if value.aval.dtype.kind in PYTHONS else "0"


def _workspaces(k: int, kernel: KernelFunction, first: int, total: int) -> list[str]:
    """Statements that get workspaces: on the stack, from the last call, or new ones."""
    if total <= STACK:
        lines = [f"  _Alignas({ALIGNED}) char block[{total}]; char *at = block;"]
    elif total <= KEPT:
        lines = [
            f"  char *work; if (keeps && !busy{k}) {{",
            f"    if (!kept{k}) kept{k} = storage({total + ALIGNED});",
            f"    work = kept{k}; busy{k} = work != 0;",
            f"  }} else work = storage({total + ALIGNED});",
        ]
    else:
        lines = [f"  char *work = storage({total + ALIGNED});"]
    if total > STACK:
        lines += ["  if (!work) return 1;", f"  char *at = work + (-(uintptr_t)work & {ALIGNED - 1});"]
    for i, size in enumerate(kernel.workspaces, first):
        lines.append(f"  p[{i}] = at; at += {-(-size // ALIGNED) * ALIGNED};")
    return lines


def _kind(value: Value) -> str:
    return KINDS[value.aval.dtype.str[1:]]


def _dims(value: Value) -> str:
    return f"(int64_t[]){{{', '.join(map(str, value.aval.shape)) or '0'}}}"


def _taken(i: int, value: Value) -> str:
    if value.aval.shape:
        call = f"elements(a[{i}], {value.aval.ndim}, {_dims(value)}, {_kind(value)}, &c[{i}])"
        return f"if (!(p[{i}] = {call}))"
    return f"int64_t x{i}; if (!(p[{i}] = value(a[{i}], {_kind(value)}, &x{i})))"


def _made(i: int, value: Value, at: int, operand: int | None) -> str:
    if operand is not None:
        return f"o[{i}] = over(a[{operand}], c[{operand}]); p[{at}] = p[{operand}];"
    if value.aval.kind == "array":
        made = f"if (!(o[{i}] = empty({value.aval.ndim}, {_dims(value)}, {_kind(value)}))) goto end;"
        return f"{made} p[{at}] = ((Array *)o[{i}])->data;"
    return f"{c_type(value.aval.dtype)} y{i}; p[{at}] = &y{i};"


def _given(i: int, value: Value) -> str:
    if value.aval.kind == "array":
        return ""
    made = f"SCALAR(&y{i}, {_kind(value)})"
    if value.aval.kind == "python":
        made = f"{MADE[value.aval.dtype.kind]}(y{i})"
    return f"if (!(o[{i}] = {made})) goto end;"
