"""Judging into shards: writing, continuing, reporting and importing them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsspec
import pytest

from mast_tui.judges.rules import RulesJudge
from mast_tui.parallel import Workers
from mast_tui.scale.judging import JudgeUnits, ShardRun, judge_into_shards
from mast_tui.scale.shards import ShardFolder
from mast_tui.taxonomy.loader import load_mast
from tests.cli.conftest import Cli, write_calls
from tests.pickled_workers import PickledWorkers

RUNS = 24
REPEATING = 6


def write_runs(folder: Path, runs: int = RUNS) -> None:
    """Write runs of two models; every fourth repeats a call, and these fail twice as often."""
    folder.mkdir(exist_ok=True)
    rows = ["trace,model,outcome"]
    for number in range(runs):
        turns = [0 if number % 4 == 0 else turn for turn in range(4)]
        write_calls(
            folder / f"run-{number:03}.json",
            (f"get {number} {turn}" for turn in turns),
            f"Task {number}",
            "the pod is up",
        )
        outcome = "failed" if number % 4 == 0 or number % 8 == 1 else "succeeded"
        rows.append(f"run-{number:03}.json,m-{number % 2},{outcome}")
    (folder / "outcomes.csv").write_text("\n".join(rows) + "\n")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write_runs(tmp_path / "runs")
    return tmp_path / "runs"


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def judge(cli: Cli, runs: Path, *options: str) -> Any:
    return cli.json("judge", runs, "--judge", "rules", "--out", "shards", *options)


def test_a_report_on_shards_has_the_figures_of_a_workspace(cli: Cli, runs: Path) -> None:
    result = judge(cli, runs)
    assert (result["traces"]["judged"], result["modes"]) == (RUNS, {"1.3": REPEATING})
    cli.ok("judge", runs, "--judge", "rules", "--quiet")
    from_workspace = cli.json("report", "--labels", result["judge"])["groups"]
    from_shards = cli.json("report", "shards")["groups"]
    assert from_shards.keys() == from_workspace.keys()
    for name, group in from_shards.items():
        expected = from_workspace[name]
        for field in ("traces", "failed", "succeeded", "unknown"):
            assert group[field] == expected[field]
        mode = expected["modes"]["1.3"]
        assert {**group["modes"]["1.3"], "corrected": mode["corrected"]} == mode
        per_trace = expected["modes_per_failed_trace"]
        assert group["modes_per_failed_trace"]["value"] == per_trace["value"]
        if expected["places"] is not None:
            onset = expected["places"]["all"]["onset"]["1.3"]
            assert group["onset"]["1.3"]["bins"] == onset["bins"]
    result = cli("report", "shards", "--by", "all")
    for text in (f"{RUNS} traces in", "Step repetition", "fatal"):
        assert text in result.out
    assert "unchecked suggestions" in result.err
    cli.refused("report", "shards", "--by", "colour")
    cli.refused("report", "shards", "--html", "x.html", code=2)
    cli.refused("report", "nowhere")
    cli.refused("report", "nothing://there", says="nothing://there")
    # A blind annotator sees no suggestions and no report on them.
    assert judge(cli, runs, "--blind")["suggestions"] is None
    cli.refused("report", "shards", "--blind")


def test_a_broken_run_continues_and_a_new_file_changes_one_shard(
    cli: Cli, runs: Path, tmp_path: Path
) -> None:
    first = judge(cli, runs)
    whole = files_in(tmp_path / "shards")
    assert first["shards"]["all"] == first["shards"]["written"] > 1
    shards = sorted((tmp_path / "shards").glob("traces-*"))
    shards[0].unlink()
    continued = judge(cli, runs)["shards"]
    assert continued == {"all": len(shards), "written": 1, "known": len(shards) - 1}
    assert files_in(tmp_path / "shards") == whole, "written twice it is the same"
    assert judge(cli, runs)["shards"]["written"] == 0
    (runs / "run-011b.json").write_bytes((runs / "run-011.json").read_bytes() + b" ")
    changed = judge(cli, runs)["shards"]
    assert changed["written"] in (1, 2), "the shard of the file, which may be split"
    assert changed["known"] == changed["all"] - changed["written"]
    for kind in ("traces", "events"):
        names = [path.name for path in (tmp_path / "shards").glob(f"{kind}-*")]
        assert len(names) == changed["all"], "replaced shards are set aside"
    (runs / "run-011b.json").unlink()
    assert judge(cli, runs)["shards"]["written"] == 0, "and are used again"


def into_shards(runs: Path, folder: ShardFolder, workers: Workers | None = None) -> ShardRun:
    return judge_into_shards(JudgeUnits(RulesJudge()), load_mast(), [runs], folder, workers)


def test_copies_of_a_trace_count_once(cli: Cli, runs: Path) -> None:
    (runs / "copies").mkdir()
    for path in [*runs.glob("run-*.json")]:
        (runs / "copies" / path.name).write_bytes(path.read_bytes())
    judge(cli, runs, "--shard-files", "4")
    traces = cli.json("report", "shards", "--by", "all")["traces"]
    assert (traces["labelled"], traces["labelled"] + traces["twice"]) == (RUNS, 2 * RUNS)


def test_workers_write_the_same_shards(cli: Cli, runs: Path, tmp_path: Path) -> None:
    judge(cli, runs)
    folder = ShardFolder(str(tmp_path / "others"))
    # A shard that ends each process is written file by file.
    lost = PickledWorkers(lost=[2, 3, 4])
    outcome = into_shards(runs, folder, lost)
    assert outcome.traces == RUNS
    assert files_in(tmp_path / "others") == files_in(tmp_path / "shards")


def test_a_file_that_kills_every_worker_is_reported(runs: Path, tmp_path: Path) -> None:
    folder = ShardFolder(str(tmp_path / "shards"))
    shards = into_shards(runs, folder).shards
    folder = ShardFolder(str(tmp_path / "others"))
    # The first shard ends three processes, and so does its first file after all other shards.
    lost = PickledWorkers(lost=[1, 2, 3, *(shards + 2 + time for time in (1, 2, 3))])
    outcome = into_shards(runs, folder, lost)
    ((path, reason),) = outcome.failed
    assert ("run-000" in path, "was killed" in reason) == (True, True)
    assert outcome.traces == RUNS - 1


def test_shards_or_some_of_their_traces_are_imported(cli: Cli, runs: Path) -> None:
    judge(cli, runs)
    cli.refused("import", "shards", "--where", "study=yes")
    cli.ok("judge", runs, "--judge", "rules", "--quiet", "--workspace", "plain.db")
    document = cli.json("import", "shards", "--workspace", "all.db")
    assert document["traces"] == {"judged": RUNS}
    from_workspace, from_shards = (
        sorted(str(row | {"created_at": ""}) for row in cli.rows("--workspace", database))
        for database in ("plain.db", "all.db")
    )
    assert from_workspace == from_shards
    selection = ("import", "shards", "--where", "mode=1.3")
    part = cli.json(*selection, "--where", "model=m-0")
    assert (part["matching"], part["traces"]) == (REPEATING, {"judged": REPEATING})
    assert cli.json(*selection)["traces"] == {"known": REPEATING}
    # The traces of a study get the judgements of another judge.
    cli.ok("study", "set", "--annotators", "ann,bob")
    cli.ok("judge", runs, "--judge", "rules", "--rules", "all", "--out", "others", "--quiet")
    document = cli.json("import", "others", "--where", "study=yes")
    assert (document["matching"], document["traces"]) == (REPEATING, {"judged": REPEATING})


def test_a_sample_depends_on_its_seed_and_not_on_the_shards(cli: Cli, runs: Path) -> None:
    judge(cli, runs)
    cli.ok("judge", runs, "--judge", "rules", "--out", "other", "--shard-files", "3", "--quiet")
    samples = []
    for folder, seed in (("shards", 1), ("other", 1), ("other", 2)):
        workspace = ("--workspace", f"{folder}{seed}.db")
        document = cli.json("import", folder, "--sample", 7, "--seed", seed, *workspace)
        assert (document["matching"], document["traces"]) == (RUNS, {"judged": 7})
        samples.append({row["trace_id"] for row in cli.rows(*workspace)})
        assert len(samples[-1]) == 7
    assert samples[0] == samples[1]
    assert samples[1] != samples[2]


def test_a_prevalence_of_all_shards_follows_from_labels_on_a_sample(cli: Cli, runs: Path) -> None:
    name = judge(cli, runs)["judge"]
    cli.ok("import", "shards", "--sample", "16", "--seed", "3")
    cli.ok("judge", runs, "--judge", "rules", "--quiet", "--workspace", "all.db")
    labels = []
    for number, trace in enumerate(sorted({row["trace_id"] for row in cli.rows()})):
        value = "present" if number % 3 == 0 else "absent"
        labels += [f"{trace},ann,1.3,{value}", f"{trace},ann,,finished"]
    figures = []
    for database, options in (("all.db", ()), (".mast-tui/workspace.db", ("--shards", "shards"))):
        workspace = ("--workspace", database)
        cli.label(*labels, options=workspace)
        agree = ("agree", "--judge", name, "--against", "ann", "--no-spans")
        figures.append(cli.json(*agree, *workspace, *options)["judge"])
    whole, from_shards = figures
    assert from_shards["traces"] == whole["traces"]
    expected, prevalence = (figure["prevalence"]["1.3"] for figure in figures)
    for field in ("n_unlabelled", "apparent", "overall"):
        assert prevalence[field] == expected[field]
    assert prevalence["overall"]["n"] == RUNS
    corrected = prevalence["corrected"]
    assert corrected["value"] == expected["corrected"]["value"]
    assert (corrected["ci"], corrected["ci_withheld"]) == (None, "few_traces")
    cli.refused("agree", "--shards", "shards", code=2)


def test_wrong_options_and_damaged_shards_are_refused(cli: Cli, runs: Path, tmp_path: Path) -> None:
    judge(cli, runs)
    arguments = ("judge", runs, "--judge", "rules", "--out")
    cli.refused(*arguments, "shards", "--rules", "all", says="give another folder")
    cli.refused(*arguments, runs, says="contains other files")
    cli.refused(*arguments, "shards", "--again", code=2)
    for condition in ("mode=9.9", "colour=red", "model="):
        cli.refused("import", "shards", "--where", condition, code=2)
    cli.refused("import", "shards", "--where", "model=m0", says="no trace matches")
    cli.refused("import", runs / "outcomes.csv", "--sample", "3", code=2)
    (tmp_path / "shards" / "manifest.json").write_text("{}")
    cli.refused("report", "shards", says="not a manifest")


def test_shards_may_be_on_object_storage(cli: Cli, runs: Path, tmp_path: Path) -> None:
    judge(cli, runs)
    url = "memory://judged/set"
    arguments = ("judge", runs, "--judge", "rules", "--out", url, "--json")
    assert cli(*arguments).json["traces"]["judged"] == RUNS
    assert cli(*arguments).json["shards"]["written"] == 0
    folder = ShardFolder(url)
    assert {name: folder.read(name) for name in folder.names()} == files_in(tmp_path / "shards")
    local = cli.json("report", "shards")
    assert cli.json("report", url) == local
    document = cli.json("import", url, "--where", "mode=1.3")
    assert document["traces"] == {"judged": REPEATING}
    cli.refused("report", "nothing://there", says="nothing://there")


def test_traces_may_be_on_object_storage(
    cli: Cli, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mast_tui.traces.io.remote._copies_folder", lambda: tmp_path / "fetched")
    monkeypatch.setattr("mast_tui.cli.shared.workers.workers_of", lambda _wanted: PickledWorkers())
    judge(cli, runs)
    url = "memory://traces-elsewhere"
    for path in runs.iterdir():
        fsspec.filesystem("memory").pipe_file(f"{url}/{path.name}", path.read_bytes())
    arguments = ("judge", url, "--judge", "rules", "--out", "far", "--json")
    document = cli(*arguments, "--workers", "2").json
    assert (document["traces"]["judged"], document["modes"]) == (RUNS, {"1.3": REPEATING})
    assert cli(*arguments).json["shards"]["written"] == 0
    local = cli.json("report", "shards")
    assert cli.json("report", "far") | {"shards": 0} == local | {"shards": 0}
    fsspec.filesystem("memory").pipe_file(f"{url}/run-003.json", b'{"messages": []}')
    assert cli(*arguments).json["shards"]["written"] == 1
    files = cli.json("inspect", f"{url}/run-00[12]*.json")["files"]
    assert [file["path"] for file in files] == [f"{url}/run-001.json", f"{url}/run-002.json"]
    document = cli.json("import", "far", "--where", "mode=1.3")
    assert document["traces"] == {"judged": REPEATING}
    (hit,) = cli("search", "Task 5", url, "--json").out.splitlines()
    assert json.loads(hit)["path"] == f"{url}/run-005.json"
