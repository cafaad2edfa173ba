"""Wrong uses and failing losses: errors with names, the user's line and a remedy, from threads and processes alike."""

from __future__ import annotations

import random
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.distributed.programs import bits, by_hand, data, network, weights

pytest.importorskip("threadpoolctl")
D = rg.distributed


@pytest.fixture(params=["threads", "processes"])
def anywhere(request: pytest.FixtureRequest) -> Any:
    """None, or a client."""
    return None if request.param == "threads" else request.getfixturevalue("client")


def line_of(function: Any) -> str:
    """The line in a function that is marked by an arrow."""
    first = function.__code__.co_firstlineno
    lines = Path(__file__).read_text().splitlines()
    at = next(k for k in range(first, len(lines) + 1) if lines[k - 1].endswith("# <-"))
    return f"{Path(__file__).name}:{at}"


class OddError(Exception):
    """An error that cannot be pickled."""

    def __init__(self, what: str, lock: Any) -> None:
        super().__init__(what)
        self.lock = lock


def test_an_error_in_the_loss_arrives_with_its_line(anywhere: Any) -> None:
    def loss(w: Any, x: Any, y: Any) -> Any:
        if len(x) == 3:
            raise LookupError("no such row")  # <-
        return network(w, x, y)

    shards = [*data(3), (data()[0][0][:3], data()[0][1][:3])]
    with pytest.raises(LookupError, match="no such row") as caught:
        D.value_and_grad(loss, anywhere, shards=shards)(weights())
    (note,) = caught.value.__notes__
    with pytest.raises(LookupError) as again:
        D.value_and_grad(loss, anywhere, shards=shards)(weights(), only=[1, 3])
    assert again.value.__notes__[0].startswith("shard 3, ")
    assert note.startswith("shard 3, in this process" if anywhere is None else "shard 3, on worker tcp://127.0.0.1:")
    assert note.endswith(line_of(loss))


def test_our_own_errors_arrive_with_their_line(anywhere: Any) -> None:
    def loss(w: Any, x: Any) -> Any:
        return w * x  # <-

    with pytest.raises(rg.errors.NonScalarOutputError) as caught:
        D.value_and_grad(loss, anywhere, shards=[(np.ones(2),)])(np.ones(2))
    assert caught.value.__notes__[0].startswith("shard 0, ")

    def traced(w: Any, x: Any) -> Any:
        return np.sum(w.tobytes() + x)  # <-

    with pytest.raises(rg.errors.UnsupportedError) as caught:
        D.value_and_grad(traced, anywhere, shards=[(np.ones(2),)])(np.ones(2))
    assert str(caught.value.where).endswith(line_of(traced))


def test_an_error_that_cannot_be_pickled_arrives_as_text(client: Any) -> None:
    def loss(w: Any, x: Any) -> Any:
        raise OddError("out of luck", threading.Lock())  # <-

    with pytest.raises(OddError):
        D.value_and_grad(loss, shards=[(1.0,)])(1.0)
    with pytest.raises(D.TravelError, match="out of luck") as caught:
        D.value_and_grad(loss, client, shards=[(1.0,)])(1.0)
    assert str(caught.value.where).endswith(line_of(loss))


@pytest.mark.parametrize("error", [StopIteration, SystemExit])
def test_an_error_that_would_end_a_worker_arrives_with_its_line(anywhere: Any, error: type[BaseException]) -> None:
    def loss(w: Any, x: Any) -> Any:
        raise error("no more")  # <-

    with pytest.raises(RuntimeError, match=rf"the function raised {error.__name__}\('no more'\)") as caught:
        D.value_and_grad(loss, anywhere, shards=[(1.0,)], retries=0)(1.0)
    (note,) = caught.value.__notes__
    assert note.startswith("shard 0, ")
    assert note.endswith(line_of(loss))


GENERATOR, RANDOM = np.random.default_rng(3), random.Random(3)
DRAWS: dict[str, Any] = {
    "a captured generator": lambda: 2.0 * GENERATOR.normal(),
    "NumPy's own": lambda: 2.0 * np.random.normal(),  # noqa: NPY002 - it is meant
    "a loop": lambda: rg.fori_loop(0, 2, lambda i, c: c + GENERATOR.normal(), 0.0),
    "Python's own": lambda: 2.0 * random.random(),
    "a method of Python's own": lambda: random.gauss(0.0, 1.0),
    "a captured random.Random": lambda: 2.0 * RANDOM.random(),
}


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("name", DRAWS)
def test_shards_do_not_share_random_numbers(name: str, inner: bool) -> None:
    def loss(w: Any, x: Any) -> Any:
        return np.sum(w * x) * DRAWS[name]()

    loss = rg.jit(loss) if inner else loss
    rg.value_and_grad(loss)(1.0, 1.0)  # which draws, and may be used again
    with pytest.raises(rg.errors.UnsupportedError, match=r"default_rng\(seed\)"):
        D.value_and_grad(loss, shards=[(1.0,), (2.0,)])(1.0)


def test_neither_on_workers_nor_in_maps(anywhere: Any) -> None:
    generator = np.random.default_rng(3)
    with pytest.raises(rg.errors.UnsupportedError, match="several shards or chunks"):
        D.value_and_grad(lambda w, x: w * x * generator.normal(), anywhere, shards=[(1.0,)])(1.0)
    with pytest.raises(rg.errors.UnsupportedError, match="several shards or chunks"):
        D.map(lambda x: x * generator.normal(), anywhere)(np.ones(3))


def drawn(seed: int) -> Any:
    return np.random.default_rng(seed).normal(size=3)


def test_a_shard_draws_from_its_own_seed(anywhere: Any) -> None:
    def loss(w: Any, seed: int) -> Any:
        return np.sum(w * drawn(seed))

    expected = rg.distributed.value_and_grad(lambda w, z: np.sum(w * z), shards=[(z,) for z in map(drawn, range(12))])
    found = D.value_and_grad(loss, anywhere, shards=[(k,) for k in range(12)])
    assert bits(found(np.ones(3))) == bits(expected(np.ones(3)))


@pytest.mark.parametrize("x", [2.0, np.float64(2.0), np.array(2.0)])
def test_a_jacobian_at_a_number(x: Any) -> None:
    assert D.jacobian(np.square)(x) == rg.jacobian(np.square)(x) == 4.0


def test_only_takes_what_can_be_run_through() -> None:
    f = D.value_and_grad(lambda w, x: w * x, shards=[(1.0,), (2.0,)])
    assert f(1.0, only=(k for k in [1]))[0] == 2.0
    with pytest.raises(rg.errors.OptionError, match="only=3 does not fit 2 shards"):
        f(1.0, only=3)  # type: ignore[arg-type]  # a wrong use


def test_after_an_error_all_goes_on(anywhere: Any) -> None:
    f = D.value_and_grad(network, anywhere, shards=data())
    with pytest.raises(ValueError, match="matmul"):
        f({"a": np.ones((3, 3)), "b": np.ones(3)})
    assert bits(f(weights())) == bits(by_hand(weights(), data()))


def test_a_file_that_is_not_there(anywhere: Any, tmp_path: Path) -> None:
    f = D.value_and_grad(network, anywhere, shards=[tmp_path / "gone.npz"])
    with pytest.raises(FileNotFoundError, match=r"gone\.npz") as caught:
        f(weights())
    assert caught.value.__notes__[0].startswith("loading shard 0, ")


def test_a_loss_that_writes_into_its_shard_leaves_it_as_it_is(anywhere: Any) -> None:
    def loss(w: Any, x: Any) -> Any:
        x *= 2.0
        return np.sum(w * x)

    x = np.ones(3)
    f = D.value_and_grad(loss, anywhere, shards=[(x,)])
    assert [f(np.ones(3))[0] for _ in range(3)] == [6.0, 6.0, 6.0]
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert x.flags.writeable


@pytest.mark.parametrize("what", ["the loss", "a shard", "a parameter"])
def test_what_cannot_be_sent_is_named(client: Any, what: str) -> None:
    lock = threading.Lock()

    def loss(w: Any, x: Any) -> Any:
        return np.sum(w * x) if what != "the loss" or lock else 0.0

    shards = [((lock, 1.0) if what == "a shard" else 1.0,)]
    with pytest.raises(D.TravelError, match="cannot be sent to workers"):
        D.value_and_grad(loss, client, shards=shards)((lock,) if what == "a parameter" else 1.0)


def test_a_module_that_workers_do_not_have_is_named(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text("import numpy as np\n\ndef loss(w, x):\n    return np.sum(w * x)\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here  # type: ignore[import-not-found]  # noqa: PLC0415 - it is written a line before

    with pytest.raises(D.TravelError, match="No module named 'only_here'") as caught:
        D.value_and_grad(only_here.loss, client, shards=[(1.0,)])(1.0)
    assert "upload_file" in caught.value.remedy
    del sys.modules["only_here"]


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "an unknown option": ({"groups": 2}, rg.errors.OptionError, "there is no option 'groups'"),
    "a group of three": ({"group": 3}, rg.errors.OptionError, "power of two"),
    "a fan-in of one": ({"fan_in": 1}, rg.errors.OptionError, "power of two"),
    "retries below zero": ({"retries": -1}, rg.errors.OptionError, "retries=-1"),
    "no time": ({"time_limit": 0}, rg.errors.OptionError, "time_limit=0"),
    "another reduction": ({"reduce": "max"}, rg.errors.OptionError, "reduce='max'"),
    "no shards": ({"shards": []}, rg.errors.OptionError, "there are no shards"),
    "an array as shards": ({"shards": np.ones(3)}, rg.errors.OptionError, "shards is a ndarray"),
    "bare arrays": ({"shards": [np.ones(3)]}, rg.errors.TreeError, "shard 0 is not a tuple of arguments"),
    "a text file": ({"shards": ["data.csv"]}, rg.errors.OptionError, r"not an \.npy or \.npz file"),
    "a client of something else": ({"client": 2}, rg.errors.OptionError, "client is a int"),
    "a bar of text": ({"progress": "yes"}, rg.errors.OptionError, "progress='yes'"),
    "a loss that is none": ({"loss": 3}, rg.errors.OptionError, "3 is not a function"),
    "a file that is none": ({"loss": "no.rg"}, rg.errors.SavedFileError, "no.rg cannot be read"),
    "a budget that is none": ({"memory": "much"}, rg.errors.OptionError, "much"),
    "a loader that is none": ({"load": 3}, rg.errors.OptionError, "load=3"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_options_are_refused_at_once(name: str) -> None:
    options, error, words = WRONG[name]
    given = {"loss": network, "shards": data(), **options}
    with pytest.raises(error, match=words) as caught:
        D.value_and_grad(**given)
    assert Path(__file__).name in str(caught.value)


@pytest.mark.parametrize("argnums", [1, -1, (0, 2), "w", True])
def test_only_parameters_are_differentiated(argnums: Any) -> None:
    told = "not a position" if argnums is True else "the parameters of this call are 0"
    with pytest.raises(rg.errors.ArgnumsError, match=told):
        D.value_and_grad(network, shards=data(), argnums=argnums)(weights())


@pytest.mark.parametrize("only", [[], [7], [-1], ["a"], [0.5]])
def test_only_shards_that_are_there(only: Any) -> None:
    with pytest.raises(rg.errors.OptionError, match="does not fit 7 shards"):
        D.value_and_grad(network, shards=data())(weights(), only=only)


def test_a_loader_must_return_a_tuple(anywhere: Any) -> None:
    with pytest.raises(
        rg.errors.TreeError, match="shard 0 is not a tuple of arguments: what the function that loads it"
    ):
        D.value_and_grad(network, anywhere, shards=[lambda: np.ones(3)])(weights())


def test_results_larger_than_memory_are_refused_after_the_first(anywhere: Any) -> None:
    calls: list[int] = []

    def wide(x: Any) -> Any:
        return np.ones((100, 100)) * x

    def watch(now: Any) -> None:
        calls.append(now.done)

    big = D.map(wide, anywhere, chunk=2, limit="100 MB", progress=watch)
    with pytest.raises(
        D.ResultTooLargeError, match="the results of 1,000 batch elements take 80,000,000 bytes"
    ) as caught:
        big(np.ones(1000))
    assert caught.value.needed == 160_000_000
    assert max(calls, default=0) <= 1
    assert big(np.ones(10)).shape == (10, 100, 100)


def test_a_jacobian_larger_than_memory_is_refused_before_anything_is_computed(anywhere: Any) -> None:
    ran: list[float] = []

    def f(x: Any) -> Any:
        return np.sin(x)

    matrix = D.jacobian(f, anywhere, progress=lambda now: ran.append(now.done))
    with pytest.raises(D.ResultTooLargeError):
        matrix(np.ones(1_000_000))
    assert ran == []


def test_wrong_maps_are_refused() -> None:
    with pytest.raises(rg.errors.OptionError, match="chunk=0"):
        D.map(np.sin, chunk=0)
    with pytest.raises(rg.errors.OptionError, match="in_axes=1"):
        D.map(np.sin, in_axes=1)(np.ones(3))
    with pytest.raises(rg.errors.OptionError, match=r"in_axes=\(None,\)"):
        D.map(np.sin, in_axes=(None,))(np.ones(3))
    with pytest.raises(rg.errors.ShapeError, match=r"\[2, 3\] batch elements"):
        D.map(np.add)(np.ones(2), np.ones(3))
    with pytest.raises(rg.errors.ShapeError):
        D.map(np.sin)(1.0)
    with pytest.raises(rg.errors.NonDifferentiableError, match="int64"):
        D.jacobian(np.sin)(np.arange(3))
