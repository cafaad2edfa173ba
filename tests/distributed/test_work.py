"""What travels and what is compiled, how tasks are called, progress and reports, TLS and ports."""

from __future__ import annotations

import io
import socket
import ssl
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.distributed.pace import Bar, Pace, ShardProgress
from retrograd.distributed.pinned import environment, one_blas_thread
from tests.distributed.processes import Machines, until
from tests.distributed.programs import bits, by_hand, data, network, weights
from tests.support.native import needs_compiler

pytest.importorskip("distributed")
psutil = pytest.importorskip("psutil")
D = rg.distributed


def kernels_built() -> int:
    """On a worker: how many kernels were made there."""
    from retrograd.distributed.kernels import KERNELS  # noqa: PLC0415 - of that process

    return KERNELS.misses


def compiled_there() -> int:
    """On a worker: how many signatures its last kernel has compiled."""
    from retrograd.distributed.kernels import KERNELS  # noqa: PLC0415 - of that process

    return [*KERNELS._made.values()][-1].cache_info().misses


def test_each_worker_compiles_once(client: Any) -> None:
    def loss(w: Any, x: Any, y: Any) -> Any:
        return network(w, x, y)

    before = client.run(kernels_built)
    f = D.value_and_grad(loss, client, shards=data())
    for seed in range(4):
        f(weights(seed))
    again = D.value_and_grad(loss, client, shards=data())  # another object of the same function
    again(weights())
    assert {n - before[worker] for worker, n in client.run(kernels_built).items()} == {1}
    assert set(client.run(compiled_there).values()) == {1}


def test_a_saved_graph_is_compiled_once_on_each_worker(client: Any, tmp_path: Path) -> None:
    shards = [(np.full((40, 20), 0.1 * k), np.full(40, 0.2 * k)) for k in range(8)]
    path = tmp_path / "network.rg"
    rg.jit(network).save(path, weights(), *shards[0])
    before = client.run(kernels_built)
    for _ in range(2):  # two functions of one file: the same bytes
        f = D.value_and_grad(path, client, shards=shards)
        for seed in range(3):
            f(weights(seed))
    assert {n - before[worker] for worker, n in client.run(kernels_built).items()} == {1}
    assert set(client.run(compiled_there).values()) == {1}


def mapped_kernels() -> list[str]:
    """On a worker: the compiled files that it has loaded from its cache."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return sorted({line.split()[-1] for line in lines if "/retrograd/native/" in line})


@needs_compiler
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="Linux tells which files a process has loaded")
def test_native_kernels_come_from_the_cache_of_each_worker(tmp_path: Path) -> None:
    homes = [tmp_path / "a", tmp_path / "b"]
    with Machines(tmp_path) as machines, machines.client() as client:
        for home in homes:
            machines.add(XDG_CACHE_HOME=str(home))
        client.wait_for_workers(2)
        with rg.config(backend="native"):
            expected = bits(D.value_and_grad(network, shards=data())(weights()))
            f = D.value_and_grad(network, client, shards=data())
            for _ in range(3):
                assert bits(f(weights())) == expected
        loaded = [*client.run(mapped_kernels).values()]
    assert sorted(Path(files[0]).parents[2] for files in loaded) == homes
    assert len({Path(file).name for files in loaded for file in files}) == len(loaded[0])  # of one name: of one source


def test_what_a_function_closes_over_is_never_stale(client: Any) -> None:
    scale = 2.0

    def loss(w: Any, x: Any) -> Any:
        return np.sum(w * x) * scale

    f = D.value_and_grad(loss, client, shards=[(np.ones(3),)])
    assert f(np.ones(3))[0] == 6.0
    scale = 3.0
    assert f(np.ones(3))[0] == 9.0


def parameters_here(run: str, dask_worker: Any) -> int:
    """On a worker: how often parameters of a function were brought to it from another worker."""
    log = dask_worker.transfer_incoming_log
    return sum(f"-parameters-{run}" in str(key) for entry in log for key in entry["keys"])


def test_parameters_travel_once_for_each_step_and_worker(client: Any) -> None:
    steps, shards = 5, data(32)
    f = D.value_and_grad(network, client, shards=shards)
    client.amm.stop()  # every two seconds it drops one of two copies, which a task may fetch again
    for seed in range(steps):
        f(weights(seed))
    client.amm.start()
    moved = client.run(parameters_here, f.engine.run)  # type: ignore[attr-defined]  # of a ClusterEngine
    assert sum(moved.values()) <= steps  # the other worker has them from the client
    assert f.report is not None
    once = len(bits(weights())) * len(f.report.workers)
    assert once < f.report.sent < once + 2000


def task_names(dask_scheduler: Any) -> list[str]:
    return list(dask_scheduler.task_prefixes)


def test_tasks_are_called_after_the_users_function(client: Any) -> None:
    def seismic_misfit(w: Any, x: Any) -> Any:
        return np.sum((w * x) ** 2)

    D.value_and_grad(seismic_misfit, client, shards=[(np.ones(3),)] * 3)(np.ones(3))
    D.hvp(seismic_misfit, client, shards=[(np.ones(3),)] * 3)(np.ones(3), np.ones(3))
    D.map(seismic_misfit, client, in_axes=(0, None))(np.ones(3), np.ones(3))
    D.minimize(seismic_misfit, np.ones(300_000), client=client, shards=[(np.ones(300_000),)] * 3, steps=2)
    names = {name for name in client.run_on_scheduler(task_names) if name.startswith("seismic_misfit")}
    work = "gradient load sum parameters code hvp map shared chunk begin state step dot cut value"
    assert names == {f"seismic_misfit-{what}" for what in work.split()}  # dask cuts what looks like a number


def test_the_report_tells_what_was_done(client: Any) -> None:
    for c, workers in ((None, 1), (client, 2)):
        f = D.value_and_grad(network, c, shards=data(16), group=2)
        assert f.report is None
        f(weights())
        found = f.report
        assert found is not None
        assert (found.name, found.shards, found.retries, found.given_up) == ("network", 16, 0, ())
        assert len(found.workers) <= workers
        assert sum(found.workers.values()) == 16
        assert found.environments == (environment(),)
        assert str(found).startswith("network: 16 shards in ")
    assert found.tasks == 8 + 1
    assert found.received == len(bits(weights())) + 8
    assert found.sent > sum(x.nbytes + y.nbytes for x, y in data(16))


def test_progress_counts_shards(client: Any) -> None:
    for c in (None, client):
        seen: list[ShardProgress] = []
        D.value_and_grad(network, c, shards=data(12), progress=seen.append)(weights())
        assert seen[-1][:3] == (12, 12, "network")
        assert [p.done for p in seen] == sorted({p.done for p in seen})


def test_the_rate_and_the_remaining_time() -> None:
    seen: list[ShardProgress] = []
    clock = iter([0.0, 2.0, 2.01, 4.0, 5.0])
    pace = Pace(seen.append, 4, "loss", lambda: next(clock))
    for _ in range(4):
        pace.advance()
    assert seen == [
        ShardProgress(1, 4, "loss", 0.5, 6.0),
        ShardProgress(3, 4, "loss", 0.75, 4.0 / 3),
        ShardProgress(4, 4, "loss", 0.8, 0.0),
    ]
    assert ShardProgress(1, 4000, "loss", 0.5, 7998.0).line == "loss  0 % [............] 1/4000, 0.5/s, 2:13:18 left"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "lines", "draws"), [(io.StringIO(), 1, 0), (Terminal(), 1, 2)])
def test_a_bar_is_drawn_on_terminals_alone(stream: io.StringIO, lines: int, draws: int) -> None:
    bar = Bar(stream)
    for done in (1, 2):
        bar(ShardProgress(done, 2, "loss", 1.0, 2.0 - done))
    said = stream.getvalue()
    assert said.count("\n") == lines
    assert said.count("\r") == draws
    assert said.endswith("loss  100 % [############] 2/2, 1/s, 0:00 left\n")


def test_blas_has_its_threads_again() -> None:
    from threadpoolctl import threadpool_info  # noqa: PLC0415 - optional

    def threads() -> list[int]:
        return [x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas"]

    before = threads()
    with one_blas_thread():
        with one_blas_thread():
            assert set(threads()) == {1}
        assert set(threads()) == {1}
    assert threads() == before


def test_workers_that_differ_are_told_of(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def tell(lie: bool) -> None:
        from retrograd.distributed import on_worker, pinned  # noqa: PLC0415 - of that process

        on_worker.environment = (lambda: "another BLAS") if lie else pinned.environment

    address = next(iter(client.scheduler_info(n_workers=-1)["workers"]))
    client.run(tell, True, workers=[address])
    try:
        f = D.value_and_grad(network, client, shards=data(16))
        with pytest.warns(D.UnequalWorkersWarning, match="another BLAS") as caught:
            f(weights())
        f(weights())  # which warns no more
        assert len(caught) == 1
        assert caught[0].filename == __file__
    finally:
        client.run(tell, False)


def listening() -> set[tuple[int, Any]]:
    me = psutil.Process()
    everyone = [me, *me.children(recursive=True)]
    return {(p.pid, c.laddr) for p in everyone for c in p.net_connections() if c.status == psutil.CONN_LISTEN}


def test_no_port_is_opened(client: Any) -> None:
    before = listening()
    assert {address.ip for _, address in before} == {"127.0.0.1"}
    D.value_and_grad(network, client, shards=data(), progress=lambda now: None)(weights())
    D.map(np.sin, client)(np.ones(4))
    assert listening() == before


def answered(address: str, context: ssl.SSLContext) -> bool:
    """Whether the scheduler says anything to somebody with these certificates."""
    host, port = address.removeprefix("tls://").split(":")
    try:
        with socket.create_connection((host, int(port)), timeout=60) as plain, context.wrap_socket(plain) as encrypted:
            return bool(encrypted.recv(1))
    except (ssl.SSLError, ConnectionError):
        return False


def test_tls_is_passed_through() -> None:
    distributed = pytest.importorskip("distributed")
    pytest.importorskip("cryptography")
    expected = bits(by_hand(weights(), data()))
    security, stranger = (distributed.Security.temporary() for _ in range(2))
    with D.cluster(1, memory=0, security=security) as client:
        address = client.scheduler.address
        assert address.startswith("tls://")
        assert bits(D.value_and_grad(network, client, shards=data())(weights())) == expected
        assert answered(address, security.get_connection_args("client")["ssl_context"])
        assert not answered(address, stranger.get_connection_args("client")["ssl_context"])
        nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        nobody.check_hostname, nobody.verify_mode = False, ssl.CERT_NONE
        assert not answered(address, nobody)


def test_memory_budgets_hold_for_each_worker(client: Any) -> None:
    def loss(w: Any, x: Any) -> Any:
        return np.sum(rg.scan(lambda c, _: (np.sin(c) * w, None), x, None, 200)[0])

    shards = [(np.full(5000, 0.1 * k),) for k in range(4)]
    expected = bits(D.value_and_grad(loss, shards=shards)(1.1))
    for c in (None, client):
        assert bits(D.value_and_grad(loss, c, shards=shards, memory="2 MB")(1.1)) == expected
        with pytest.raises(rg.errors.MemoryBudgetError) as caught:
            D.value_and_grad(loss, c, shards=shards, memory="10 kB")(1.1)
        assert caught.value.minimum > 10_000


def test_without_dask_there_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with (
        pytest.raises(rg.errors.UnsupportedError, match="needs the package distributed") as caught,
        D.cluster(2),
    ):
        pass
    assert "retrograd[distributed]" in caught.value.remedy


def test_clusters_refuse_wrong_counts() -> None:
    for workers in (0, -1, 1.5, True):
        with pytest.raises(rg.errors.OptionError, match="workers="), D.cluster(workers):  # type: ignore[arg-type]  # wrong
            pass


def test_close_lets_workers_forget(client: Any) -> None:
    def held() -> int:
        return sum(run in str(key) for keys in client.has_what().values() for key in keys)

    with D.value_and_grad(network, client, shards=data()) as f:
        run = f.engine.run  # type: ignore[attr-defined]  # of a ClusterEngine
        f(weights())
        assert held() >= 8
    until(lambda: held() == 0)
