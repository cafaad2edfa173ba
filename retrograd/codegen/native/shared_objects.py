"""Compile C with the compiler that is there, and keep what it makes in a folder of the user's."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import hashlib
import importlib.machinery
import importlib.util
import os
import platform
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ...ir.processor import processor
from .c_texts import SIMD
from .elements import NoC
from .shim import SHARED, definitions, kept_text, shared_source

FLAGS = (
    *("-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fopenmp-simd", "-fwrapv"),
    *("-fPIC", "-fvisibility=hidden", "-pthread", "-w"),
)
# The widest vectors: for some processors GCC takes half of them, which costs a fifth, and does not vectorise choices by
# bools.
WIDEST = ("-march=native", "-mprefer-vector-width=512")
OWN = {**dict.fromkeys(("x86_64", "AMD64"), WIDEST), **dict.fromkeys(("arm64", "aarch64"), ("-mcpu=native",))}
MODULE, OBJECT = ".so", ".o"
LINKING = frozenset({"-shared", "-bundle", "-undefined", "dynamic_lookup"})  # flags that are not for object files
HIDDEN = '-DRG_SHARED=extern __attribute__((visibility("hidden")))'  # what modules share is not in their source
LARGEST = 256 * 2**20  # bytes of the folder, beyond which what was made first goes
EFFORT = {  # by lines of C, from which on more of it takes seconds
    20_000: ("-O1",),
    3000: ("-O1", "-ftree-vectorize", "-fvect-cost-model=dynamic", "-fpeel-loops"),
}
LOOPS = 20  # vectorised loops, from which on GCC keeps so much across them that it takes registers and time
LEAN = ("-O3", "-fno-tree-pre", "-fno-gcse", "-fno-tree-dominator-opts", "--param=max-completely-peeled-insns=100")
# For loops over functions that limit their arguments: GCC would compute with the limits in branches, and choose each
# number of the function by itself.
LIMITED = ("-O3", "-fno-tree-pre", "-fno-thread-jumps")
LIMITS = re.compile(r"= rg_(?:cosh|erf|exp|exp2|exp_below|expit|expm1|pow|sinh|tanh)f?\(v\d")
CLANG = {20_000: ("-O1",), 3000: ("-O2",)}
PATIENCE = 120  # seconds for one compilation: the longest of the benchmark takes 15, and 40 on a busy machine
ANSWER = 10  # seconds for what a compiler says of itself
DTYPES = ("f8", "f4", "i8", "?", "c16", "c8")
THREADS: list[Callable[[], int]] = []  # how many threads a call may use
_loaded: dict[str, Any] = {}
_keeps = [True]  # whether kernels keep workspaces
_helpers = [0]  # the address of the function of the first module that gives work to threads
_lock = threading.RLock()
_private: dict[int, Path] = {}  # the folder that only this process uses
_hangs: set[Compiler] = set()  # compilers that did not end, which nobody waits for again


def _in_child() -> None:
    global _lock  # noqa: PLW0603 - a thread that is not in this process may hold the other one
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_in_child)


@dataclass(frozen=True)
class Compiler:
    """A compiler: its command, what it says of itself, and the flags that it gets."""

    command: tuple[str, ...]
    version: str
    flags: tuple[str, ...]


def compiler() -> Compiler | None:
    """The C compiler that the environment variable CC names, or the first of cc, gcc and clang; None without one."""
    return _compiler(os.environ.get("CC", ""), os.environ.get("PATH", ""))


@cache
def _compiler(chosen: str, path: str) -> Compiler | None:
    for command in [chosen] if chosen else ["cc", "gcc", "clang"]:
        words = _words(command)
        found = shutil.which(words[0], path=path) if words else None
        if found is None:
            continue
        told, _ = _run([found, *words[1:], "--version"], "", ANSWER)
        if told.returncode == 0:
            version = told.stdout.partition("\n")[0].strip()
            return Compiler((found, *words[1:]), version, flags_for(sys.platform, platform.machine()))
    return None


def flags_for(system: str, machine: str) -> tuple[str, ...]:
    """The flags on a system and a machine, by the names that Python has for them."""
    own = OWN.get(machine, ("-march=native",))
    extension = ("-bundle", "-undefined", "dynamic_lookup") if system == "darwin" else ("-shared",)
    return (*FLAGS, *own, *extension)


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # a quote that does not end
        return []


def _run(command: Sequence[str], text: str, patience: float) -> tuple[subprocess.CompletedProcess[str], bool]:
    """What a compiler says to a text, and whether it was ended, with all that it started, since it took too long."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    told: dict[str, Any] = {"encoding": "utf-8", "errors": "replace", "start_new_session": True}
    try:
        with subprocess.Popen(command, **pipes, **told) as process:  # noqa: S603 - no shell, and the command is a compiler's
            try:
                out, errors = process.communicate(text, patience)
            except BaseException as fault:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                if not isinstance(fault, subprocess.TimeoutExpired):
                    raise
                return subprocess.CompletedProcess(command, 1, "", f"it did not end within {patience:g} seconds"), True
            return subprocess.CompletedProcess(command, process.returncode, out, errors), False
    except OSError as fault:
        return subprocess.CompletedProcess(command, 1, "", str(fault)), False


def fits() -> bool:
    """Whether this Python and this NumPy have the layout of objects that kernels rely on."""
    plain = sys.implementation.name == "cpython" and sys.maxsize == 2**63 - 1 and sys.byteorder == "little"
    return plain and not sysconfig.get_config_var("Py_GIL_DISABLED") and not hasattr(sys, "gettotalrefcount")


def folder() -> Path:
    """The folder that is kept, or a new one that only this process uses: if the cache is off, or not ours alone."""
    if os.environ.get("RETROGRAD_CACHE", "") != "off":
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        with contextlib.suppress(OSError, RuntimeError):
            above = Path(base).expanduser() / "retrograd"
            path = above / "native"
            above.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.mkdir(mode=0o700, exist_ok=True)
            if ours(above) and ours(path):
                return path
    return _own_folder()


def ours(path: Path) -> bool:
    """Whether a folder belongs to this user, and nobody else can write into it."""
    found = path.lstat()
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return own and not found.st_mode & 0o022 and os.access(path, os.W_OK)


def _own_folder() -> Path:
    """A folder that this process removes when it ends; another one if it is gone, as old temporary files may be."""
    process = os.getpid()
    with contextlib.suppress(KeyError, OSError):
        if ours(_private[process]):
            return _private[process]
    path = _private[process] = Path(tempfile.mkdtemp(prefix="retrograd-native-"))
    atexit.register(_remove, path, process)
    return path


def _remove(path: Path, process: int) -> None:
    if os.getpid() == process:  # a child runs what its parent has registered
        shutil.rmtree(path, ignore_errors=True)


def functions(source: str, count: int, fallbacks: Sequence[Callable[..., Any]]) -> list[Callable[..., Any]]:
    """The functions ``k0``, ``k1``, ... of an extension module; NoC if it cannot be made."""
    with _lock:
        tool = compiler()
        if tool is None:
            raise NoC("there is no C compiler")
        key = _key(source, tool)
        if key not in _loaded:
            _loaded[key] = _module(_file(source, tool), fallbacks)
        return [getattr(_loaded[key], f"k{k}") for k in range(count)]


def _key(source: str, tool: Compiler) -> str:
    """What a file is known by."""
    told = [source, *tool.command, tool.version, *tool.flags, _machine()]
    return hashlib.sha256("\0".join(told).encode()).hexdigest()


@cache
def _machine() -> str:
    """What a file depends on beside its source."""
    return f"{platform.platform()}\n{processor()}\n{sys.version}\n{np.__version__}"


def _flags_for(tool: Compiler, source: str) -> tuple[str, ...]:
    """The flags for a source. With less effort, marked loops are vectorised, too."""
    lines, clang = source.count("\n"), "clang" in tool.version
    efforts = CLANG if clang else EFFORT
    usual = LEAN if source.count(SIMD) >= LOOPS else LIMITED if LIMITS.search(source) else ("-O3",)
    effort = next((flags for least, flags in efforts.items() if lines > least), ("-O3",) if clang else usual)
    return at_effort(tool.flags, effort)


def at_effort(flags: Sequence[str], effort: Sequence[str]) -> tuple[str, ...]:
    """Flags with others in the place of ``-O3``."""
    return tuple(flag for known in flags for flag in (effort if known == "-O3" else (known,)))


def _file(source: str, tool: Compiler) -> Path:
    """The compiled file. It has its key in it, and its name has the hash of its contents: others are made again."""
    try:
        return _made(source, tool, folder(), MODULE)
    except OSError as fault:
        raise NoC(f"compiled files cannot be kept: {fault}") from fault


def _made(source: str, tool: Compiler, home: Path, suffix: str) -> Path:
    key = _key(source, tool)
    for known in sorted(home.glob(f"{key}-*{suffix}")):
        with contextlib.suppress(OSError):
            contents = b"" if known.is_dir() else known.read_bytes()
            if key.encode() in contents and known.stem.partition("-")[2] == hashlib.sha256(contents).hexdigest():
                os.utime(known)
                return known
            _discard(known)
    if tool in _hangs:
        raise NoC("the compiler failed: it did not end before, and is not asked again")
    command = [*tool.command, HIDDEN, "-x", "c", "-"]
    if suffix == OBJECT:
        command += ["-c", *(flag for flag in at_effort(tool.flags, ("-O2",)) if flag not in LINKING)]
    else:
        shared = [name for name in SHARED if definitions(name) in source]
        objects = [str(_made(shared_source(name), tool, home, OBJECT)) for name in shared]
        for name in shared:
            source = source.replace(definitions(name), "")
        command += [*_flags_for(tool, source), "-x", "none", *objects, "-lm"]
    descriptor, name = tempfile.mkstemp(".making", dir=home)
    os.close(descriptor)
    made = Path(name)
    marked = source + kept_text(f"rg_{key}", key)
    try:
        told, hangs = _run([*command, "-o", name], marked, PATIENCE)
        if hangs:
            _hangs.add(tool)
        if told.returncode:
            raise NoC(f"the compiler failed: {told.stderr.strip()[-500:]}")
        contents = made.read_bytes()
        if key.encode() not in contents:
            raise NoC("the compiler made something else")
        made.chmod(0o700)
        known = home / f"{key}-{hashlib.sha256(contents).hexdigest()}{suffix}"
        made.replace(known)
    finally:
        made.unlink(missing_ok=True)
    _prune(home, known)
    return known


def _discard(path: Path) -> None:
    """Remove a file, or a folder that has the name of one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def files_in(home: Path) -> list[Path]:
    """The compiled files of a folder."""
    return [path for suffix in (MODULE, OBJECT) for path in home.glob(f"*{suffix}")]


def _prune(home: Path, last: Path) -> None:
    """Remove what was used least recently, until the folder is small enough, and what was left half made."""
    with contextlib.suppress(OSError):
        for path in home.glob("*.making"):
            if path.stat().st_mtime < time.time() - 2 * PATIENCE:
                path.unlink(missing_ok=True)
        found = sorted((p.stat().st_mtime, p.stat().st_size, p) for p in files_in(home) if p != last)
        total = last.stat().st_size + sum(size for _, size, _ in found)
        for _, size, path in found:
            if total <= LARGEST:
                break
            _discard(path)
            total -= size


def _module(path: Path, fallbacks: Sequence[Callable[..., Any]]) -> Any:
    loader = importlib.machinery.ExtensionFileLoader("rg_native", str(path))
    spec = importlib.util.spec_from_loader("rg_native", loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as fault:
        raise NoC(f"{path.name} cannot be loaded: {fault}") from fault
    types = [np.dtype(code) for code in DTYPES]
    module.setup(np.ndarray, _numpy_functions(), *types, *(dtype.type for dtype in types), *fallbacks)
    if hasattr(module, "keep"):
        module.keep(int(_keeps[0]))
    if hasattr(module, "share"):
        _helpers[0] = module.share(_threads, _helpers[0])
    return module


def keep_workspaces(wanted: bool) -> None:
    """Whether kernels keep their workspaces for the next call; if not, they free those that they have."""
    with _lock:
        _keeps[0] = wanted
        for module in _loaded.values():
            if hasattr(module, "keep"):
                module.keep(int(wanted))


def _threads() -> int:
    return min((ask() for ask in THREADS), default=1)


@cache
def _numpy_functions() -> int:
    """The address of the table of functions that NumPy has for C."""
    private: Any = importlib.import_module("numpy._core._multiarray_umath")

    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    found: int = address(private._ARRAY_API, None)
    return found
