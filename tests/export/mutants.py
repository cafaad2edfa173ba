"""Mutants of saved files, and whether loading one is right: a named error, or the function that the file describes."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from retrograd.errors import SavedFileError
from retrograd.export.saving import from_bytes, to_bytes

WORDS = ["", "-1", "0", "2", "99999999999999999999", "1e999", "None", "nan", "sin", "host", "draw", "call", "f64[3]"]
WORDS += ["[]", "{}", "leaf", "f32", "%x", "axis", "__import__", "true", '"', "\\", "\n", "\x00", "é", "(" * 100]
VALUES = [None, -1, 0, 1, 2**70, 1e300, "", "x", "os:system", [], [[]], {}, True, "leaf", "static", ["int", "9" * 50]]


def parts(data: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """The first line of a file, its header, the text of its graph, and its arrays."""
    first, _, body = data.split(b"\n", 2)
    line, _, rest = body.partition(b"\n")
    size = json.loads(line)["graph"]
    return first, line, rest[:size], rest[size:]


def hashed(first: bytes, header: Any, text: bytes, arrays: bytes) -> bytes:
    """A file of these parts whose hash and length of text are right."""
    if isinstance(header, dict):
        header = json.dumps(header | {"graph": len(text)}, sort_keys=True).encode()
    body = header + b"\n" + text + arrays
    return first + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def flipped(rng: random.Random, data: bytes, _: bytes) -> bytes:
    """Some bits of a file, changed."""
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


def cut(rng: random.Random, data: bytes, _: bytes) -> bytes:
    """The beginning or the end of a file, or a file with a hole."""
    a, b = sorted(rng.randrange(len(data)) for _ in range(2))
    return rng.choice([data[:a], data[a:], data[:a] + data[b:]])


def spliced(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """The beginning of one file and the end of another."""
    return data[: rng.randrange(len(data))] + other[rng.randrange(len(other)) :]


def with_other_bytes(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """A file with bits flipped, a hole, or the end of another, and the right hash."""
    first, _, body = data.split(b"\n", 2)
    body = rng.choice([flipped, cut, spliced])(rng, body, other)
    return first + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def with_other_text(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """A file whose graph has other words, and the right hash."""
    first, line, text, arrays = parts(data)
    words = re.split(r"(\W)", text.decode())
    pool = WORDS + re.split(r"\W", parts(other)[2].decode()) + [w for w in words if w.strip()]
    for _ in range(rng.choice([1, 1, 2, 4])):
        words[rng.randrange(len(words))] = rng.choice(pool)
    return hashed(first, json.loads(line), "".join(words).encode(), arrays)


def with_other_lines(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """A file whose graph has lines missing, twice, exchanged, or of another, and the right hash."""
    first, line, text, arrays = parts(data)
    lines = text.decode().splitlines(keepends=True)
    theirs = parts(other)[2].decode().splitlines(keepends=True)
    k = rng.randrange(len(lines))
    how = rng.randrange(4)
    if how == 0:
        del lines[k]
    else:
        lines.insert(k, lines[k] if how == 1 else rng.choice(lines if how == 2 else theirs))
    return hashed(first, json.loads(line), "".join(lines).encode(), arrays)


def with_other_fields(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """A file whose header has other values, and the right hash."""
    first, line, text, arrays = parts(data)
    header = json.loads(line)
    key = rng.choice(sorted(header))
    theirs = json.loads(parts(other)[1])
    header[key] = rng.choice([_changed(rng, header[key]), theirs[key], rng.choice(VALUES)])
    if rng.random() < 0.1:
        del header[key]
    return hashed(first, json.dumps(header).encode() if key == "graph" else header, text, arrays)


def _changed(rng: random.Random, x: Any) -> Any:
    """A value with one part changed."""
    if isinstance(x, list) and x and rng.random() < 0.9:
        k = rng.randrange(len(x))
        return [*x[:k], _changed(rng, x[k]), *x[k + 1 :]]
    if isinstance(x, bool):
        return not x
    return x + rng.choice([-1, 1]) if isinstance(x, int) else rng.choice(VALUES)


def with_other_arrays(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """A file whose arrays have other bytes, the lengths being right, and the right hash."""
    first, line, text, arrays = parts(data)
    header = json.loads(line)
    changed = rng.choice([flipped, cut, spliced])(rng, arrays, parts(other)[3] or b"\x93NUMPY") if arrays else b"x"
    if header["arrays"]:
        header["arrays"][-1][0] += len(changed) - len(arrays)
    return hashed(first, header, text, changed)


WAYS: list[Callable[[random.Random, bytes, bytes], bytes]] = [
    flipped,
    cut,
    spliced,
    with_other_bytes,
    with_other_text,
    with_other_text,
    with_other_lines,
    with_other_fields,
    with_other_fields,
    with_other_arrays,
]


def mutant(seed: int, files: list[Path]) -> tuple[Path, bytes, str]:
    """A file, a mutant of it, and how it was made."""
    rng = random.Random(seed)
    path, other = rng.choice(files), rng.choice(files)
    way = WAYS[seed % len(WAYS)]
    return path, way(rng, path.read_bytes(), other.read_bytes()), way.__name__


def outcome(data: bytes) -> tuple[str, Any]:
    """What reading a file gives: ``"refused"`` by name, or ``"read"`` and the contents, which are written again."""
    try:
        saved = from_bytes(data)
    except SavedFileError as fault:
        return ("refused" if str(fault).startswith("[RG0160] ") and fault.remedy else "nameless"), None
    again = to_bytes(saved)
    return ("read" if to_bytes(from_bytes(again)) == again else "unstable"), saved
