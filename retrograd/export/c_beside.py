"""The C of a function on the native target, for a file beside its module, and the command that builds it."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from ..compiler.executable import Executable
from ..ir.target import TARGETS
from .frozen import Frozen
from .module_parts import CODE, Code, code_of


def _with_c(frozen: Frozen) -> Code:
    """The statements of the NumPy target, with kernels as functions, and the same kernels in C."""
    from ..codegen.native.shared_objects import compiler  # noqa: PLC0415 - few programs run C
    from ..codegen.native.shim import kept_text  # noqa: PLC0415 - likewise
    from ..codegen.native.target import c_kernels  # noqa: PLC0415 - likewise

    executable = Executable(replace(frozen.final, name="_computed"), ordered=frozen.ordered)
    module = executable.module
    code = code_of(module, TARGETS["numpy"].load(module, executable.filename, {}))
    source, names = c_kernels(module)
    tool = compiler()
    if source and tool is not None:
        digest = f"retrograd {hashlib.sha256(source.encode()).hexdigest()}"
        text = f"{source}\n{kept_text('rg_digest', digest)}"
        build = f"cc {' '.join((*tool.flags, '-Wno-psabi'))} -o {{stem}}_c.so {{stem}}.c -lm"
        return replace(code, beside=text, built=tuple(names), build=build, digest=digest)
    return code


CODE["native"] = _with_c
