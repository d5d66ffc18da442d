"""Workers of a Dask cluster: a scheduler with a worker in this process, by their address."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from mast_tui.parallel import NoWorkers, workers_of
from mast_tui.scale import cluster as cluster_module
from mast_tui.scale.shards import ShardFolder
from tests.judges.llm.made_answers import judgement, write_runs
from tests.judges.llm.server import ModelServer, answer
from tests.test_parallel import batches, broken, squares

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow


def local_cluster() -> Any:
    """Return a scheduler with one worker in this process."""
    return distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp",
        dashboard_address="127.0.0.1:0",
    )  # fmt: skip


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with local_cluster() as running:
        yield running


def test_a_cluster_returns_results_in_order(cluster: Any) -> None:
    with workers_of(cluster.scheduler_address) as workers:
        assert (workers.count, cluster.scheduler_address in workers.description) == (1, True)
        assert list(workers.map(squares, batches(20, 3))) == squares(range(20))
        with pytest.raises(ValueError, match="no 0"):
            list(workers.map(broken, batches(4, 4)))


def test_a_model_judges_on_a_cluster_within_one_allowance(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    write_runs(tmp_path / "runs", 4)
    with ModelServer(
        lambda body, _: answer(judgement(body), tokens_in=5000, tokens_out=500)
    ) as server:
        command = ["judge", "runs", "--judge", "llm", "--model", "m", "--base-url", server.base_url]
        command += ["--shard-files", "2", "--workers", cluster.scheduler_address, "--out"]
        assert run(split_command([*command, "all", "--max-tokens-total", "100000"])) == 0
        assert len(server.chats) == 4
        assert run(split_command([*command, "part", "--max-tokens-total", "12000"])) == 1
        assert 4 < len(server.chats) < 8
    assert len([*(tmp_path / "all").glob("traces-*")]) > 1
    sent = pickle.dumps(ShardFolder("all"))
    monkeypatch.chdir("/")
    assert pickle.loads(sent).path("x") == str(tmp_path / "all" / "x"), (
        "workers have another working directory"
    )


def test_a_worker_with_another_version_is_refused(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "_package_version", lambda: "0.0.1")
    with pytest.raises(NoWorkers, match=r"0\.0\.1.*install the same version"):
        workers_of(cluster.scheduler_address)


def test_a_cluster_that_stops_ends_the_run() -> None:
    with local_cluster() as running, workers_of(running.scheduler_address) as workers:
        results = workers.map(squares, batches(60, 1))
        assert next(results) == 0
        running.close()
        with pytest.raises(NoWorkers, match="run the same command to continue"):
            list(results)


def test_a_missing_cluster_or_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "_PATIENCE", 0.2)
    with pytest.raises(NoWorkers, match="no Dask scheduler answers"):
        workers_of("tcp://127.0.0.1:9")

    def missing(_name: str) -> object:
        raise ImportError

    monkeypatch.setattr(cluster_module, "import_module", missing)
    with pytest.raises(NoWorkers, match=r"pip install 'mast-tui\[cluster\]'"):
        workers_of("tcp://127.0.0.1:8786")
