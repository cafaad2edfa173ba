"""Every exception of retrograd.

    RetrogradError                        RG0000
    ├── UserError                         RG0100  the program or the call must change
    │   ├── UnsupportedError              RG0101  a NumPy function or form that is not traced
    │   ├── NonDifferentiableError        RG0102  an integer, string or object where a derivative is wanted
    │   ├── NonScalarOutputError          RG0103  grad of a function whose output has several elements
    │   ├── ArgnumsError                  RG0104  argnums that the call does not have
    │   ├── ShapeError                    RG0105  shapes or dtypes that do not fit
    │   ├── TreeError                     RG0106  containers whose structures differ
    │   ├── OptionError                   RG0107  an option with a wrong value or of a wrong type
    │   ├── GradientCheckError            RG0108  check_grads found a wrong derivative
    │   ├── CarryError                    RG0109  a loop whose carry changes shape, dtype or structure
    │   ├── CapturedWriteError            RG0110  a traced value written into an array created outside the trace
    │   ├── ReadOnlyError                 RG0111  a write into a read-only array
    │   ├── TraceLengthError              RG0112  a trace longer than rg.config.max_nodes
    │   ├── NanError                      RG0113  the first nan or infinity, inside rg.debug_nans()
    │   ├── LensLawError                  RG0120  a lens whose pullback breaks a law
    │   ├── HigherOrderCotangentError     RG0130  a function value differentiated where only its calls are known
    │   ├── MemoryBudgetError             RG0140  a number of bytes that is too small for any plan
    │   ├── SolutionError                 RG0150  a solver that found no solution, or one without a derivative
    │   ├── SavedFileError                RG0160  a file that rg.load cannot read, or that is not what was saved
    │   └── ChangedError                  RG0161  a committed derivative that is no longer that of its function
    ├── TracerError                       RG0200  a traced value used where it cannot be
    │   ├── LeakedTracerError             RG0201  used after its trace has ended
    │   ├── RecordMismatchError           RG0202  values of unrelated traces mixed in one operation
    │   ├── TracerConversionError         RG0203  passed to code that needs a plain array or number
    │   ├── ControlFlowError              RG0204  a Python branch on a value that is not known yet
    │   └── CapturedTracerError           RG0205  a custom derivative that captures a traced value
    ├── SnapshotError                     RG0300  a state that cannot be written to disk, or read back
    └── InternalError                     RG0900  a fault of retrograd: please report it
        ├── GraphError                    RG0901  a graph that breaks the rules of the IR
        └── ParseError                    RG0902  text that is not a graph

    UnusedPlanWarning                             a loop whose memory plan cannot be followed
    IndependentOutputWarning                      a gradient that is zero, as the output ignores the argument
    Thrown                                        what throw_if and require raise where nothing catches it
    ManyPathsWarning                              a function whose Python decisions differ from call to call
    UnwatchedWarning                              a function that changes what it reads, or reads what cannot be checked
    RetraceWarning                                a function that is compiled again and again
    NoCompilerWarning                             the native target is chosen, and there is no C compiler that works

Each class has a stable code. A message says what happened, where in the user's program, and what to do instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Final

from .where import user_site

HERE: Final = object()  # the default place: the user's line that led to the error
MADE: list[Callable[[RetrogradError], None]] = []  # are told of each error as it is made


class RetrogradError(Exception):
    """The root: it says what happened, where, and what to do. ``where`` defaults to the user's line that led here."""

    code: ClassVar[str] = "RG0000"
    ours: ClassVar[str] = ""  # where to report a fault of retrograd, for which no line of the user's is to blame

    def __init__(self, what: str, *, where: object = HERE, remedy: str = "") -> None:
        where = (None if self.ours else user_site()[0]) if where is HERE else where
        self.what, self.where, self.remedy = what, where, remedy
        place = "" if where is None else f"\n  at {where}"
        mended = f"\n  remedy: {remedy or self.ours}" if remedy or self.ours else ""
        super().__init__(f"[{self.code}] {what}{place}{mended}")
        for told in MADE:
            told(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), where=self.where, remedy=self.remedy), (self.what,), vars(self)


class UserError(RetrogradError):
    """The user's program or call must change."""

    code = "RG0100"


class UnsupportedError(UserError, TypeError):
    """A NumPy function, or a form of it, that is not traced."""

    code = "RG0101"


class NonDifferentiableError(UserError, TypeError):
    """An integer, bool, string or object at a differentiated position."""

    code = "RG0102"


class NonScalarOutputError(UserError, TypeError):
    """The output of a function under ``grad`` must have exactly one element."""

    code = "RG0103"


class ArgnumsError(UserError, ValueError):
    """``argnums`` names an argument that the call does not have."""

    code = "RG0104"


class ShapeError(UserError, ValueError):
    """Shapes or dtypes that do not fit together."""

    code = "RG0105"


class TreeError(UserError, ValueError):
    """Containers (dicts, lists, dataclasses, ...) whose structures differ."""

    code = "RG0106"


class OptionError(UserError, ValueError):
    """An option with a wrong value."""

    code = "RG0107"


class GradientCheckError(UserError, AssertionError):
    """``check_grads`` found a derivative that disagrees with finite differences."""

    code = "RG0108"


class CarryError(UserError, TypeError):
    """The carry of a loop changes its shape, dtype or structure."""

    code = "RG0109"


class CapturedWriteError(UserError, TypeError):
    """A traced value is written into an array that was created outside the traced function."""

    code = "RG0110"


class ReadOnlyError(UserError, ValueError):
    """A write into a read-only array."""

    code = "RG0111"


class TraceLengthError(UserError, ValueError):
    """A trace became longer than ``rg.config.max_nodes``: a loop or a recursion that does not end."""

    code = "RG0112"


class NanError(UserError, FloatingPointError):
    """Inside ``rg.debug_nans()``: an operation made a nan or an infinity out of finite numbers."""

    code = "RG0113"


class LensLawError(UserError, AssertionError):
    """``check_lens`` found a pullback that breaks a law.

    ``law`` is its name: "repetition", "additivity", "homogeneity" or "derivative".
    """

    code = "RG0120"

    def __init__(self, what: str, *, law: str = "", where: object = HERE, remedy: str = "") -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.law = law


class HigherOrderCotangentError(UserError, TypeError):
    """A function value is differentiated although its cotangent is wanted as pairs of inputs and cotangents."""

    code = "RG0130"


class MemoryBudgetError(UserError, ValueError):
    """No plan stays within a memory budget; ``minimum`` is the least number of bytes that a plan needs."""

    code = "RG0140"

    def __init__(self, what: str, *, minimum: int = 0, where: object = HERE, remedy: str = "") -> None:
        super().__init__(what, where=where, remedy=remedy or (f"allow at least {minimum:,} bytes" if minimum else ""))
        self.minimum = minimum


class SolutionError(UserError, FloatingPointError):
    """A solver found no solution, or the Jacobian is singular at the solution, which then has no derivative."""

    code = "RG0150"


class SavedFileError(UserError, ValueError):
    """A file that ``rg.load`` cannot read: damaged, of another version, or no saved function."""

    code = "RG0160"


class ChangedError(UserError, AssertionError):
    """A committed derivative is no longer that of its function; the message shows the difference."""

    code = "RG0161"


class TracerError(RetrogradError):
    """A traced value is used where it cannot be."""

    code = "RG0200"


class LeakedTracerError(TracerError):
    """A traced value outlived its trace."""

    code = "RG0201"


class RecordMismatchError(TracerError):
    """One operation mixes values of unrelated traces."""

    code = "RG0202"


class TracerConversionError(TracerError, TypeError):
    """A traced value reached code that needs a plain array or number."""

    code = "RG0203"


class ControlFlowError(TracerError, TypeError):
    """A Python branch, loop bound or index depends on a value that is not known while tracing."""

    code = "RG0204"


class CapturedTracerError(TracerError):
    """A function with a custom derivative captures a traced value, which would get no derivative."""

    code = "RG0205"


class SnapshotError(RetrogradError, OSError):
    """A state of a loop cannot be written to disk, or what is read back is not what was written."""

    code = "RG0300"


class InternalError(RetrogradError):
    """A fault of retrograd itself."""

    code = "RG0900"
    ours = "unless you wrote the graph, report this to the tracker of retrograd's repository, with `retrograd doctor`"


class GraphError(InternalError):
    """A graph breaks the rules of the IR; the excerpt shows where."""

    code = "RG0901"


class ParseError(InternalError, ValueError):
    """A text is not a graph."""

    code = "RG0902"


class ManyPathsWarning(UserWarning):
    """A function takes more paths than ``rg.config.max_traces``: others that come back are interpreted: slow."""


class UnwatchedWarning(UserWarning):
    """A function changes what it reads, reads what cannot be watched, or returns a new object: each call records it."""


class RetraceWarning(UserWarning):
    """A function was compiled again and again, since what it reads was another each time."""


class NoCompilerWarning(UserWarning):
    """Kernels cannot be compiled: NumPy runs them."""


class UnusedPlanWarning(UserWarning):
    """A loop keeps all its residuals in spite of its memory plan, since something other than a loop reads them."""


class IndependentOutputWarning(UserWarning):
    """The differentiated output does not depend on the argument: the gradient is zero."""


class Thrown(Exception):  # noqa: N818 - the user's own signal, not a fault
    """``throw_if`` and ``require`` raise it outside ``try_catch``; ``payload``, a tree, is what was thrown."""

    def __init__(self, payload: Any = ()) -> None:
        self.payload = payload
        super().__init__(payload)
