"""The native target, made where it is first chosen: few programs run C."""

from __future__ import annotations

from functools import partial

from ..codegen.native.shared_objects import THREADS as ALLOWED
from ..codegen.native.taken import takes
from ..codegen.native.target import Native
from ..ir.target import TARGETS
from ..passes.fuse import Policy, fuse
from .block_threads import THREADS

ALLOWED.append(THREADS.allowed)
NATIVE = Native(TARGETS["numpy"], partial(fuse, policy=Policy(takes=takes)))
TARGETS.add(NATIVE)
