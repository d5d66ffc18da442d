"""``mast-tui report``: its figures, its files and its refusals."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from mast_tui.labels import AnnotatorKind, Finding
from mast_tui.taxonomy.loader import load_mast
from mast_tui.workspace import store_judgement
from tests.cli.conftest import Cli, open_workspace
from tests.figures.signatures.study_counts import csv_wide

JUDGE = "judge:rules@1"
NAMES = ("ann", "bob")


def write_table(path: Path, *rows: str, columns: str = "1.1,3.3") -> None:
    """Write a ``csv-wide`` table of ``trace_id,annotator,model,outcome`` and two modes."""
    head = f"trace_id,annotator,model,outcome,{columns}"
    path.write_text("\n".join([head, *rows]) + "\n", "utf-8")


def store_findings(presence: Mapping[str, bool], *codes: str) -> None:
    """Store judgements on these modes; the first mode is present in some of the traces."""
    slugs = [mode.slug for mode in load_mast().modes if mode.code in codes]
    with open_workspace() as workspace:
        workspace.add_annotator(JUDGE, AnnotatorKind.JUDGE)
        for trace, is_present in presence.items():
            store_judgement(
                workspace,
                judge=JUDGE,
                taxonomy=load_mast().ref,
                trace_id=trace,
                looks_at=slugs,
                findings=[Finding(slugs[0], None, None, "so", 0.5)] if is_present else [],
            )


def report_on(cli: Cli, tmp_path: Path, *rows: str, args: tuple[str, ...] = ()) -> Any:
    """Import rows of labels, and return the JSON document of the report."""
    write_table(tmp_path / "labels.csv", *rows)
    cli.ok("import", "labels.csv", "--format", "csv-wide")
    return cli.json("report", *args)


def flat(text: str) -> str:
    return " ".join(text.split())


def outcomes(cli: Cli) -> tuple[int, int, int]:
    traces = cli.json("report")["traces"]
    return traces["failed"], traces["succeeded"], traces["unknown"]


def test_figures_that_need_more_data_are_undefined_with_a_reason(cli: Cli, tmp_path: Path) -> None:
    with open_workspace():
        pass
    empty = cli.json("report")
    assert empty["groups"] == {}
    assert any("There are no figures" in text for text in empty["cannot_say"])
    assert "no trace that anyone has finished" in cli("report").out

    rows = ("t1,ann,m,,1,0", "t2,ann,m,,0,0", "t3,ann,\x1b[31mred[/b],failed,1,0")
    never_together = ("t4,ann,n,failed,1,0", "t5,ann,n,failed,0,1")
    groups = report_on(cli, tmp_path, *rows, *never_together)["groups"]
    group = groups["m"]
    assert (group["traces"], group["failed"], group["succeeded"], group["unknown"]) == (2, 0, 0, 2)
    mode = group["modes"]["1.1"]
    assert (mode["count"], mode["n"]) == (1, 2)
    assert (mode["failed"]["rate"], mode["difference_pp"]) == (None, None)
    assert (mode["undefined"]["p_value"], mode["severity"]) == ("not_judged", "unclear")
    assert group["modes_per_failed_trace"]["undefined"] == "no_failed"
    assert any("outcome" in text for text in group["cannot_say"])
    (one_trace,) = (group for name, group in groups.items() if name not in "mn")
    assert one_trace["modes_per_failed_trace"]["value"] == 1
    assert one_trace["modes_per_failed_trace"]["ci"] is None
    assert {mode["severity"] for mode in one_trace["modes"].values()} == {"unclear"}
    assert one_trace["modes"]["1.1"]["undefined"]["difference_pp"] == "no_succeeded"
    assert any("succeeded" in text for text in one_trace["cannot_say"])
    # No label names a span, so the step at which a run was lost is unknown.
    assert cli.json("report", "--bill")["groups"]["m"]["bill"] is None

    remedies = cli.json("report")["what_helps"]
    text = cli("report", "--by", "model").out
    assert remedies["strategies"]["1.1"][0] in flat(text)
    assert remedies["measured"]["source"]["url"].startswith("https://arxiv.org/")
    assert remedies["measured"]["source"]["url"] in flat(text)
    assert "together" not in text + cli("report").out, "no two modes occur in one trace"
    assert "\x1b" not in text
    assert "␛[31mred[/b]" in text


def test_figures_of_failures_are_drawn_only_with_outcomes(cli: Cli, tmp_path: Path) -> None:
    report_on(cli, tmp_path, "t1,ann,m,,1,0", "t2,ann,m,,0,0")
    out = cli("report", "--figures", "drawn").out
    assert "drawn: 1 figures\n  occurrence-all.svg" in out


@pytest.mark.parametrize("with_outcome", [2, 12])
def test_occurrence_of_modes_comes_before_comparison_by_outcome(
    cli: Cli, tmp_path: Path, with_outcome: int
) -> None:
    rows = []
    for i in range(40):
        outcome = ("failed", "succeeded")[i % 2] if i < with_outcome else ""
        model = "small" if i < 3 else f"m{i % 2}"
        rows.append(f"t{i},ann,{model},{outcome},{int(i % 4 == 0)},{'' if i == 7 else 0}")
    overall = report_on(cli, tmp_path, *rows)["overall"]
    assert overall == cli.json("report", "--by", "all")["overall"]
    assert (overall["traces"], overall["failed"] + overall["succeeded"]) == (40, with_outcome)
    assert (overall["modes"]["1.1"]["all"]["count"], overall["modes"]["1.1"]["all"]["n"]) == (
        10,
        40,
    )
    files = ("--markdown", "r.md", "--latex", "r.tex", "--html", "r.html", "--csv", "r.csv")
    for by in ((), ("--by", "model"), ("--by", "all")):
        cli.ok("report", *by, *files, "--figures", "f", "--force")
        text = cli("report", *by).out
        compares = with_outcome == 12 and by != ("--by", "model")
        for output in (text, *((tmp_path / name).read_text("utf-8") for name in files[1:6:2])):
            comparison = output.find("Modes in failed and successful traces")
            assert (comparison > output.index("How often each mode occurs")) == compares
            assert (comparison == -1) != compares
            assert (f"{with_outcome} of 40 traces have one" in flat(output)) == (with_outcome < 10)
        row = next(line for line in text.splitlines() if line.startswith("1.1 "))
        assert re.search(r"25% \[14, 40\] +10 +40", row)
        titles = [line for line in text.splitlines() if line.startswith("── ")]
        groups = {(): ["m0", "m1"], ("--by", "model"): ["m0", "m1", "small"]}.get(by, [])
        assert [title.split()[1] for title in titles] == ["All", *groups, "Methods"]
        assert ("1 model with fewer than 5 traces" in text) == (not by)
        names = {path.stem for path in (tmp_path / "f").iterdir()}
        assert {f"occurrence-{group}" for group in ("all", *groups)} <= names
        assert ("prevalence-all" in names) == compares
        shutil.rmtree(tmp_path / "f")
        table = (tmp_path / "r.csv").read_text("utf-8").splitlines()
        (row,) = [r for r in table if r.startswith("mode,all,1.1,") and ",all_rate," in r]
        assert ",0.25,0.14" in row


def test_outcomes_follow_from_scores_below_a_limit(cli: Cli, tmp_path: Path) -> None:
    rows = ("t1,ann,m,succeeded,1,0,0.2", "t2,ann,m,failed,0,0,0.9", "t3,ann,m,failed,0,0,")
    write_table(tmp_path / "labels.csv", *rows, columns="1.1,3.3,score")
    cli.ok("import", "labels.csv", "--format", "csv-wide")
    group = cli.json("report", "--failed-below", "0.5")["groups"]["m"]
    assert (group["failed"], group["succeeded"], group["unknown"]) == (1, 1, 1)
    mean = {"value": pytest.approx(0.55), "n": 2, "ci": None}
    assert group["mean_score"] == mean | {"ci_withheld": "few_traces", "ci_needs": 5}
    assert group["modes"]["1.1"]["failed"]["count"] == 1


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the study's counts."""
    folder = tmp_path_factory.mktemp("counted")
    table = folder / "study.csv"
    database = folder / "w.db"
    table.write_text(csv_wide(), "utf-8")
    arguments = ["import", str(table), "--format", "csv-wide", "--workspace", str(database)]
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        assert run(split_command(arguments)) == 0
    return database


@pytest.fixture
def study_cli(cli: Cli, counted: Path, tmp_path: Path) -> Cli:
    """A command line in a folder with a copy of that workspace."""
    (tmp_path / ".mast-tui").mkdir()
    shutil.copy(counted, tmp_path / ".mast-tui" / "workspace.db")
    return cli


def test_compare_reports_two_models_as_arms_of_an_experiment(study_cli: Cli) -> None:
    models = ("--compare", "GPT-OSS-120B,Gemini-3-Flash")
    result = study_cli("report", "--json", *models)
    assert "--compare will be removed in the next release; use: mast-tui experiment" in result.err
    report = result.json
    assert report["paired"] is None  # no task is known
    assert report["experiment"]["baseline"] == "Gemini-3-Flash"
    comparison = report["comparison"]
    assert comparison["groups"] == ["GPT-OSS-120B", "Gemini-3-Flash"]
    repetition = comparison["modes"]["2.6"]
    assert repetition["difference_pp"] == pytest.approx(100 * (84 / 89 - 18 / 58))
    low, high = repetition["difference_ci_pp"]
    assert 0 < low < repetition["difference_pp"] < high
    assert repetition["p_adjusted"] < 0.05 < comparison["modes"]["2.5"]["p_adjusted"]
    per_failed = report["experiment"]["arms"]["GPT-OSS-120B"]["modes_per_failed_run"]
    assert per_failed["difference"]["value"] == pytest.approx(421 / 79 - 114 / 44)

    lines = study_cli("report", *models).out.splitlines()
    assert max(cell_len(line) for line in lines) <= 100
    for mode in load_mast().modes:
        # Occurrence and class, for all traces and for each model; then the comparison.
        assert sum(line.startswith(f"{mode.code}   {mode.name[:7]}") for line in lines) == 7
    assert sum("fatal    both" in line for line in lines) == 4
    for text in ("modes per failed trace 2.6", "gold", "mast@3"):
        assert text in flat("\n".join(lines))


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ("--by weather", 1, "weather"),
        ("--labels zoe", 1, "zoe"),
        ("--compare GPT-OSS-120B,o9", 1, "o9"),
        ("--figures study.csv/figures", 1, "cannot be created"),
        ("--compare one", 2, "--compare"),
        ("--paired m,o --compare m,o", 2, "--paired"),
        ("--paired m,o --by all", 2, "--paired"),
        ("--paired GPT-OSS-120B,Gemini-3-Flash", 1, "no known task was run by both"),
        ("--alpha 2", 2, "alpha"),
        ("--isolated 9", 2, "not 9 modes"),
        ("--failed-below nan", 2, "--failed-below"),
        ("--bill --without-places", 2, "--bill"),
        ("--html a --csv a", 2, "a"),
        ("--bare", 2, "--bare"),
        ("--output a.csv", 2, "give --records too"),
        ("--records --json", 2, "leave out --json"),
        ("--records --output a.txt", 2, "use an extension out of .jsonl, .csv, .parquet"),
    ],
)
def test_options_that_cannot_be_used_are_refused(
    study_cli: Cli, options: str, code: int, message: str
) -> None:
    Path("study.csv").touch()
    refused = study_cli.refused("report", *options.split(), says=message, code=code)
    assert code == 2 or refused.err.count("\n") <= 2
    assert [path.name for path in Path().iterdir() if path.name[0] != "."] == ["study.csv"]


def test_a_judges_figures_are_corrected_by_labels_of_annotators(cli: Cli, tmp_path: Path) -> None:
    write_table(tmp_path / "labels.csv", *(f"t{i},ann,m,failed,{int(i < 10)},0" for i in range(20)))
    cli.ok("import", "labels.csv", "--format", "csv-wide")
    # The judge misses half of what ann labels, and finds nothing else.
    store_findings({f"t{i}": i < 5 for i in range(20)} | {f"u{i}": i < 6 for i in range(20)}, "1.1")
    report = cli.json("report", "--labels", JUDGE, "--by", "all")
    mode = report["groups"]["all"]["modes"]["1.1"]
    assert report["labels_kind"] == "judge"
    assert mode["all"]["rate"] == pytest.approx(11 / 40)
    assert mode["corrected"]["n_unlabelled"] == 20
    assert mode["corrected"]["apparent"]["value"] == pytest.approx(6 / 20)
    assert mode["corrected"]["corrected"]["value"] == pytest.approx(0.6)
    assert report["groups"]["all"]["modes"]["3.3"]["n"] == 0
    output = cli("report", "--labels", JUDGE, "--by", "all").out
    table = output[output.index("corrected for the judge") :].splitlines()
    row = next(line.split() for line in table if line.startswith("1.1 "))
    assert {"30%", "60%"} <= set(row)


def test_an_annotators_report_counts_only_traces_they_finished(cli: Cli, tmp_path: Path) -> None:
    rows = ("t1,ann,m,failed,1,0", "t2,ann,m,failed,1,0", "t1,bob,m,failed,1,0")
    report = report_on(cli, tmp_path, *rows, args=("--annotator", "bob"))
    assert report["groups"]["m"]["traces"] == 1
    report = cli.json("report", "--annotator", "newcomer")
    assert report["groups"] == {}
    # The report does not claim that no one has finished a trace.
    assert report["cannot_say"] == [
        "There are no figures: no trace that anyone has finished under mast@3 is included."
    ]


def test_a_report_is_written_in_all_formats_at_once(study_cli: Cli, tmp_path: Path) -> None:
    files = ("--html", "r.html", "--markdown", "r.md", "--csv", "r.csv", "--latex", "r.tex")
    study_cli.ok("report", *files, "--figures", "drawn", "--bare", "--rounds", "0")
    page, text, rows, tex = ((tmp_path / name).read_text("utf-8") for name in files[1::2])
    for name in ("GPT-OSS-120B", "Gemini-3-Flash"):
        assert name in page
        assert f"## {name}" in text
        assert name in tex
        assert f",{name}," in rows
    (drawn,) = (tmp_path / "drawn").glob("prevalence-gpt-oss-120b.svg")
    assert 'class="v-t v-h"' not in drawn.read_text("utf-8")
    assert page.count("<svg") == len(list((tmp_path / "drawn").iterdir()))
    study_cli.ok("report", *files, "--rounds", "0")


def test_figures_without_the_image_library_are_refused(
    study_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    result = study_cli(
        "report", "--figures", "drawn", "--figures-format", "pdf", "--html", "r.html"
    )
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert "mast-tui[figures]" in result.err
    assert not (tmp_path / "drawn").exists()
    assert not (tmp_path / "r.html").exists()


def test_one_annotators_labels_are_not_called_gold(cli: Cli, tmp_path: Path) -> None:
    rows = [f"t{i},ann,m,{'failed' if i % 2 else 'succeeded'},{i % 2},0" for i in range(8)]
    report = report_on(cli, tmp_path, *rows)
    zeros = dict.fromkeys(("unanimous", "majority", "adjudicated", "unresolved"), 0)
    assert report["gold"] == {
        "sources": zeros | {"single": 16}, "traces": zeros | {"single": 8}, "annotators": ["ann"],
        "settled_only": False, "not_in_study": {}, "merged": 0,
    }  # fmt: skip
    assert report["labels"] == report["labels_kind"] == "gold"
    source = "ann, one person, no gold (verdicts: 16 single)"
    assert f"labels: {source}" in flat(cli("report").out)
    cli.ok("report", "--html", "page.html", "--figures", "drawn")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert source.replace("'", "&#x27;") in page
    assert "agreed on" not in page
    for figure in (tmp_path / "drawn").glob("*.svg"):
        assert "one person" in figure.read_text("utf-8"), figure
    settled = cli.json("report", "--gold", "settled")
    assert settled["traces"]["labelled"] == settled["gold"]["sources"]["single"] == 0


def test_gold_reports_its_sources_and_settled_gold_leaves_out_single_verdicts(
    cli: Cli, tmp_path: Path
) -> None:
    rows = [f"t{i},{name},m,failed,1,{int(name == 'bob')}" for i in range(3) for name in NAMES]
    report = report_on(cli, tmp_path, *rows, "t7,ann,m,failed,1,1", "t8,bob,m,failed,0,?")
    # They differ on 3.3; on t8 bob is unsure of it, which is a verdict too.
    counts = {"unanimous": 3, "majority": 0, "adjudicated": 0, "unresolved": 3}
    assert report["gold"]["sources"] == counts | {"single": 4}
    assert report["gold"]["traces"] == counts | {"single": 2}
    assert "labels: gold (verdicts: 3 unanimous, 4 single, 3 unresolved)" in cli("report").out
    settled = cli.json("report", "--gold", "settled")
    assert settled["traces"]["labelled"] == 3
    assert settled["groups"]["m"]["modes"]["1.1"]["n"] == 3
    assert settled["groups"]["m"]["modes"]["3.3"]["n"] == 0
    text = flat(cli("report", "--gold", "settled").out)
    assert "gold, settled verdicts only (verdicts: 3 unanimous, 3 unresolved)" in text
    cli.refused("report", "--labels", "ann", "--gold", "settled", code=2)
    assert cli.json("report", "--labels", "ann")["gold"] is None


def test_agree_and_export_use_settled_gold(cli: Cli, tmp_path: Path) -> None:
    rows = [f"t{i},{name},m,failed,1,0" for i in range(2) for name in NAMES]
    report_on(cli, tmp_path, *rows, "t7,ann,m,failed,1,1")
    store_findings(dict.fromkeys(("t0", "t1", "t7"), False), "1.1", "3.3")
    args = ("agree", "--judge", "rules", "--rounds", "0")
    judged = cli.json(*args)["judge"]
    assert (judged["gold"]["sources"]["single"], judged["gold"]["sources"]["unanimous"]) == (2, 4)
    measure = "Reference: gold (verdicts: 4 unanimous, 2 single)."
    assert measure in flat(cli(*args).out)
    settled = cli.json(*args, "--gold", "settled")["judge"]
    assert settled["traces"]["compared"] == 2
    assert settled["gold"]["sources"]["single"] == settled["left_out"]["unresolved"] == 0
    assert cli.json(*args, "--against", "ann")["judge"]["gold"] is None
    cli.refused("agree", "--gold", "settled", code=2)
    cli.refused(*args, "--gold", "settled", "--against", "ann", code=2)

    cli.ok("export", "--format", "gold", "-o", "gold.json", "--gold", "settled")
    gold = json.loads((tmp_path / "gold.json").read_text("utf-8"))
    assert [trace["trace_id"] for trace in gold["traces"]] == ["t0", "t1"]
    assert (gold["gold"]["sources"]["unanimous"], gold["gold"]["settled_only"]) == (4, True)
    sheet = (tmp_path / "gold.datasheet.md").read_text("utf-8")
    assert "one annotator alone are left out" in sheet
    assert cli.gold()["gold"]["sources"]["single"] == 2
    bobs_gold = cli.rows("--annotators", "bob", labels="gold")
    assert {row["trace_id"] for row in bobs_gold} == {"t0", "t1"}
    for options in (("--gold", "settled"), ("--labels", "ann", "--majority")):
        cli.refused("export", "--format", "csv-wide", "-o", "x.csv", *options, code=2)


def test_figures_over_models_are_stratified_and_reversals_are_named(
    cli: Cli, tmp_path: Path
) -> None:
    # Runs of the strong model rarely fail and often show the mode; the weak one is the reverse.
    counts = {
        "strong": {"failed": (18, 20), "succeeded": (60, 80)},
        "weak": {"failed": (24, 80), "succeeded": (2, 20)},
        "": {"failed": (1, 2), "succeeded": (0, 1)},
    }
    rows = [
        f"{model}{outcome}{i},ann,{model},{outcome},{int(i < present)},0"
        for model, by_outcome in counts.items()
        for outcome, (present, traces) in by_outcome.items()
        for i in range(traces)
    ]
    group = report_on(cli, tmp_path, *rows, args=("--by", "all"))["groups"]["all"]
    stratified = group["stratified"]
    assert (stratified["by"], stratified["strata"]) == ("model", ["strong", "weak"])
    mode = stratified["modes"]["1.1"]
    assert (stratified["left_out"], mode["strata"], mode["n"]) == (3, 2, 200)
    assert mode["difference_pp"] == pytest.approx(17.5)
    assert group["modes"]["1.1"]["difference_pp"] < 0
    assert stratified["reversed"] == ["1.1"]
    assert stratified["modes"]["3.3"]["undefined"] == "never_seen"
    text = flat(cli("report", "--by", "all").out)
    for part in (
        "stratified by model",
        "Disobey task specification 2 200 +18 [",
        "For 1.1, the difference within models",
    ):
        assert part in text
    cli.ok("report", "--by", "all", "--html", "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "stratified by model" in page
    assert "paradox" in page
    by_model = cli.json("report")["groups"]
    assert {group["stratified"] for group in by_model.values()} == {None}


def label_runs(cli: Cli, tmp_path: Path, outcomes: str | None) -> dict[str, str]:
    """Write three runs and an ``outcomes.csv``, label two runs, and return ids by file name."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in "abc":
        messages = [
            {"role": "user", "content": f"do {name}"},
            {"role": "assistant", "content": "no"},
        ]
        (folder / f"{name}.json").write_text(json.dumps({"messages": messages}), "utf-8")
    if outcomes is not None:
        (folder / "outcomes.csv").write_text(outcomes, "utf-8")
    cli.ok("judge", "runs", "--judge", "rules", "--quiet")
    files = cli.json("inspect", "runs")["files"]
    ids = {Path(file["path"]).name: file["traces"][0]["id"] for file in files}
    write_table(tmp_path / "labels.csv", *(f"{ids[f'{name}.json']},ann,,,1,0" for name in "ab"))
    cli.ok("import", "labels.csv", "--format", "csv-wide")
    return ids


def test_outcomes_that_are_added_or_corrected_later_count(cli: Cli, tmp_path: Path) -> None:
    ids = label_runs(cli, tmp_path, None)
    table = tmp_path / "runs" / "outcomes.csv"
    assert outcomes(cli) == (0, 0, 2)
    table.write_text(f"trace,outcome,model\na.json,failed,m1\n{ids['b.json']},failed,m2\n")
    assert outcomes(cli) == (2, 0, 0)
    assert set(cli.json("report")["groups"]) == {"m1", "m2"}
    table.write_text("trace,outcome\na.json,failed\nb.json,succeeded\n")
    assert outcomes(cli) == (1, 1, 0)
    # A trace whose file is gone keeps its last known outcome.
    (tmp_path / "runs" / "b.json").unlink()
    table.write_text("trace,outcome\na.json,succeeded\nb.json,failed\n")
    assert outcomes(cli) == (0, 2, 0)
    # A reward in the trace itself goes before the table.
    run = {"messages": [{"role": "user", "content": "do it"}], "reward": 1.0}
    (tmp_path / "runs" / "b.json").write_text(json.dumps(run), "utf-8")
    cli.ok("judge", "runs", "--judge", "rules", "--quiet")
    [file] = cli.json("inspect", "runs/b.json")["files"]
    write_table(tmp_path / "more.csv", f"{file['traces'][0]['id']},ann,,,1,0")
    cli.ok("import", "more.csv", "--format", "csv-wide", "--allow-new")
    assert outcomes(cli) == (0, 3, 0)


def test_rows_of_outcomes_that_match_no_file_are_named(cli: Cli, tmp_path: Path) -> None:
    rows = "a.json,failed\nc.json,failed\nd.json,failed\nb,perhaps\n"
    label_runs(cli, tmp_path, f"trace,outcome\n{rows}")
    result = cli("report")
    [unmatched] = [line for line in result.err.splitlines() if "match no file" in line]
    assert "2 of 4 rows" in unmatched
    assert "line 4: 'd.json'" in unmatched
    assert "c.json" not in unmatched, "the file exists without labels"
    assert "line 5: outcome is 'perhaps'" in result.err
    [skipped] = cli.json("inspect", "runs")["skipped"]
    assert [problem["place"] for problem in skipped["problems"]] == ["line 5", "line 4", "line 5"]
    assert "2 match a trace" in skipped["reason"]


def test_records_have_the_figures_of_the_document(cli: Cli, tmp_path: Path) -> None:
    rows = [f"t{i},ann,m{i % 2},{('failed', 'succeeded')[i % 3 == 0]},{i % 2},0" for i in range(20)]
    document = report_on(cli, tmp_path, *rows)
    lines = [json.loads(line) for line in cli("report", "--records").out.splitlines()]
    fields = ("scope", "group", "mode", "condition", "statistic")
    by_field = {tuple(line[key] for key in fields): line for line in lines}
    assert len(by_field) == len(lines)
    for name, group in ({"": document["overall"]} | document["groups"]).items():
        assert by_field["group", name, "", "failed", "traces"]["value"] == group["failed"]
        for code, mode in group["modes"].items():
            for side in ("all", "failed", "succeeded"):
                record = by_field["mode", name, code, side, "rate"]
                figure = mode[side]
                assert (record["value"], record["count"]) == (figure["rate"], figure["count"])
                assert record["n"] == figure["n"]
            points = by_field["mode", name, code, "", "difference"]["value"]
            assert (None if points is None else 100 * points) == mode["difference_pp"]
    assert by_field["mode", "m1", "1.1", "failed", "rate"]["sources"] == {
        "part": "signatures", "modes": ["disobey_task_specification"], "subject": [],
        "group": "m1", "where": [["outcome", "failed"]],
    }  # fmt: skip
    cli.ok("report", "--records", "--output", "r.csv")
    assert len((tmp_path / "r.csv").read_text("utf-8").splitlines()) == len(lines) + 1
