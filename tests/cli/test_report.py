"""``mast-tui report``: what it says, and what it says that it cannot say."""

from __future__ import annotations

import json
import re
import shutil
import sys
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
from mast_tui.workspace import Workspace, store_judgement
from tests.cli.conftest import Cli
from tests.figures.signatures.study_counts import csv_wide

JUDGE = "judge:rules@1"
NAMES = ("ann", "bob")


def write(path: Path, *rows: str, columns: str = "1.1,3.3") -> None:
    """A small ``csv-wide`` file: ``trace_id,annotator,model,outcome`` and two modes."""
    head = f"trace_id,annotator,model,outcome,{columns}"
    path.write_text("\n".join([head, *rows]) + "\n", "utf-8")


def report_on(cli: Cli, tmp_path: Path, *rows: str, args: tuple[str, ...] = ()) -> Any:
    """Import rows of labels, and return the JSON document of the report."""
    write(tmp_path / "labels.csv", *rows)
    assert cli("import", "labels.csv", "--format", "csv-wide").code == 0
    done = cli("report", "--json", *args)
    assert done.code == 0, done.err
    return done.json


def figures(document: Any) -> list[Any]:
    """Every value in a document."""
    if isinstance(document, dict):
        return [value for one in document.values() for value in figures(one)]
    if isinstance(document, list):
        return [value for one in document for value in figures(one)]
    return [document]


def test_without_outcomes_nothing_is_said_of_failures(cli: Cli, tmp_path: Path) -> None:
    report = report_on(cli, tmp_path, "t1,ann,m,,1,0", "t2,ann,m,,0,0")
    group = report["groups"]["m"]
    assert (group["traces"], group["failed"], group["succeeded"], group["unknown"]) == (2, 0, 0, 2)
    mode = group["modes"]["1.1"]
    assert (mode["count"], mode["n"]) == (1, 2)
    assert mode["failed"]["rate"] is None
    assert mode["difference_pp"] is None
    assert mode["undefined"]["p_value"] == "not_judged"
    assert mode["severity"] == "unclear"
    assert group["modes_per_failed_trace"]["undefined"] == "no_failed"
    assert any("outcome" in said for said in group["cannot_say"])
    # No figure is drawn of failures.
    done = cli("report", "--figures", "drawn")
    assert "drawn: 1 figures\n  occurrence-all.svg" in done.out


@pytest.mark.parametrize("known", [2, 12])
def test_how_often_each_mode_occurs_comes_first_however_few_outcomes_are_known(
    cli: Cli, tmp_path: Path, known: int
) -> None:
    rows = []
    for i in range(40):
        outcome = ("failed", "succeeded")[i % 2] if i < known else ""
        model = "small" if i < 3 else f"m{i % 2}"
        rows.append(f"t{i},ann,{model},{outcome},{int(i % 4 == 0)},{'' if i == 7 else 0}")
    overall = report_on(cli, tmp_path, *rows)["overall"]
    assert overall == cli("report", "--json", "--by", "all").json["overall"]
    assert (overall["traces"], overall["failed"] + overall["succeeded"]) == (40, known)
    assert overall["modes"]["1.1"]["all"]["count"] == 10
    assert overall["modes"]["1.1"]["all"]["n"] == 40
    written = ("--markdown", "r.md", "--latex", "r.tex", "--html", "r.html", "--csv", "r.csv")
    for by in ((), ("--by", "model"), ("--by", "all")):
        assert cli("report", *by, *written, "--figures", "f", "--force").code == 0
        text = cli("report", *by).out
        told = {"text": text} | {
            name: (tmp_path / name).read_text("utf-8") for name in ("r.md", "r.tex", "r.html")
        }
        for kind, shown in told.items():
            first = shown.index("How often each mode occurs")
            compares = known == 12 and by != ("--by", "model")
            assert ("Modes in failed and successful traces" in shown) == compares, kind
            if compares:
                assert first < shown.index("Modes in failed and successful traces"), kind
            assert (f"{known} of 40 traces have one" in shown) == (known < 10), kind
        row = next(line for line in text.splitlines() if line.startswith("1.1 "))
        assert re.search(r"25% \[14, 40\] +10  40", row)
        titles = [line for line in text.splitlines() if line.startswith("── ")]
        groups = {(): ["m0", "m1"], ("--by", "model"): ["m0", "m1", "small"]}.get(by, [])
        assert [title.split()[1] for title in titles] == ["All", *groups, "How"]
        assert ("1 model of fewer than 5 traces" in text) == (not by)
        names = {path.stem for path in (tmp_path / "f").iterdir()}
        assert {f"occurrence-{group}" for group in ("all", *groups)} <= names
        assert ("prevalence-all" in names) == compares
        for one in (tmp_path / "f").iterdir():
            one.unlink()
        (row,) = [
            line
            for line in (tmp_path / "r.csv").read_text("utf-8").splitlines()
            if line.startswith("mode,all,1.1,") and ",all_rate," in line
        ]
        assert ",0.25,0.14" in row


def test_one_trace_is_a_report_without_a_verdict(cli: Cli, tmp_path: Path) -> None:
    report = report_on(cli, tmp_path, "t1,ann,m,failed,1,0")
    group = report["groups"]["m"]
    assert group["modes_per_failed_trace"]["value"] == 1
    assert group["modes_per_failed_trace"]["ci"] is None
    assert {mode["severity"] for mode in group["modes"].values()} == {"unclear"}
    assert group["modes"]["1.1"]["undefined"]["difference_pp"] == "no_succeeded"
    assert any("succeeded" in said for said in group["cannot_say"])


def test_a_workspace_in_which_nobody_has_finished_says_so(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path / "labels.csv")
    Workspace.open(tmp_path / ".mast-tui" / "workspace.db").close()
    done = cli("report", "--json")
    assert done.code == 0
    assert done.json["groups"] == {}
    assert any("there is no figure" in said for said in done.json["cannot_say"])
    assert "No trace that anybody has finished" in cli("report").out


def test_the_outcome_follows_from_the_score_where_that_is_asked_for(
    cli: Cli, tmp_path: Path
) -> None:
    rows = ("t1,ann,m,succeeded,1,0,0.2", "t2,ann,m,failed,0,0,0.9", "t3,ann,m,failed,0,0,")
    write(tmp_path / "labels.csv", *rows, columns="1.1,3.3,score")
    cli("import", "labels.csv", "--format", "csv-wide")
    group = cli("report", "--json", "--failed-below", "0.5").json["groups"]["m"]
    assert (group["failed"], group["succeeded"], group["unknown"]) == (1, 1, 1)
    assert group["mean_score"] == {
        "value": pytest.approx(0.55),
        "n": 2,
        "ci": None,
        "ci_withheld": "few_traces",
        "ci_needs": 5,
    }
    assert group["modes"]["1.1"]["failed"]["count"] == 1


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the study's counts."""
    folder = tmp_path_factory.mktemp("counted")
    table, place = folder / "study.csv", folder / "w.db"
    table.write_text(csv_wide(), "utf-8")
    arguments = ["import", str(table), "--format", "csv-wide", "--workspace", str(place)]
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        assert run(split_command(arguments)) == 0
    return place


@pytest.fixture
def study(cli: Cli, counted: Path, tmp_path: Path) -> Cli:
    """A command line beside a copy of that workspace."""
    (tmp_path / ".mast-tui").mkdir()
    shutil.copy(counted, tmp_path / ".mast-tui" / "workspace.db")
    return cli


def test_two_models_are_compared_as_arms_of_an_experiment(study: Cli) -> None:
    done = study("report", "--json", "--compare", "GPT-OSS-120B,Gemini-3-Flash")
    assert "--compare will be removed in the next release; use: mast-tui experiment" in done.err
    report = done.json
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


def test_text_is_at_most_a_hundred_columns_and_names_every_mode_with_its_word(study: Cli) -> None:
    lines = study("report", "--compare", "GPT-OSS-120B,Gemini-3-Flash").out.splitlines()
    assert max(cell_len(line) for line in lines) <= 100
    for mode in load_mast().modes:
        # How often it occurs and its class, for all traces and each model; then the comparison.
        assert sum(line.startswith(f"{mode.code}   {mode.name[:7]}") for line in lines) == 7
    assert sum("fatal    both" in line for line in lines) == 4
    text = " ".join(" ".join(lines).split())
    assert "modes per failed trace 2.6" in text
    assert "gold" in text
    assert "mast@3" in text


def test_what_is_not_there_is_refused_in_a_line(study: Cli) -> None:
    for args, word in (
        (("--by", "weather"), "weather"),
        (("--labels", "zoe"), "zoe"),
        (("--compare", "GPT-OSS-120B,o9"), "o9"),
    ):
        done = study("report", *args)
        assert done.code == 1
        assert word in done.err
        assert len(done.err.splitlines()) == 1
    for args in (("--compare", "one"), ("--alpha", "2"), ("--isolated", "9")):
        assert study("report", *args).code == 2


def test_names_of_models_reach_no_terminal_as_they_are(cli: Cli, tmp_path: Path) -> None:
    report_on(cli, tmp_path, "t1,ann,\x1b[31mred[/b],failed,1,0")
    shown = cli("report", "--by", "model").out
    assert "\x1b" not in shown
    assert "␛[31mred[/b]" in shown


def test_a_judge_s_labels_come_with_what_they_are_corrected_to(cli: Cli, tmp_path: Path) -> None:
    rows = [f"t{i},ann,m,failed,{int(i < 10)},0" for i in range(20)]
    write(tmp_path / "labels.csv", *rows)
    cli("import", "labels.csv", "--format", "csv-wide")
    taxonomy = load_mast()
    mode = taxonomy.modes[0].slug
    workspace = Workspace.open(tmp_path / ".mast-tui" / "workspace.db")
    workspace.add_annotator(JUDGE, AnnotatorKind.JUDGE)
    # Two of three that it should see it misses, and it sees nothing that is not there.
    for i in range(20):
        for trace, seen in ((f"t{i}", i < 5), (f"u{i}", i < 6)):
            finding = Finding(mode, None, None, "so", 0.5)
            store_judgement(
                workspace,
                judge=JUDGE,
                taxonomy=taxonomy.ref,
                trace_id=trace,
                looks_at=[mode],
                findings=[finding] if seen else [],
            )
    workspace.close()
    report = cli("report", "--json", "--labels", JUDGE, "--by", "all").json
    found = report["groups"]["all"]["modes"]["1.1"]
    assert report["labels_kind"] == "judge"
    assert found["all"]["rate"] == pytest.approx(11 / 40)
    assert found["corrected"]["n_unlabelled"] == 20
    assert found["corrected"]["apparent"]["value"] == pytest.approx(6 / 20)
    assert found["corrected"]["corrected"]["value"] == pytest.approx(0.6)
    assert report["groups"]["all"]["modes"]["3.3"]["n"] == 0
    output = cli("report", "--labels", JUDGE, "--by", "all").out
    table = output[output.index("corrected for the judge") :].splitlines()
    row = next(line.split() for line in table if line.startswith("1.1 "))
    assert "30%" in row
    assert "60%" in row


def test_with_a_name_only_what_they_have_finished_is_counted(cli: Cli, tmp_path: Path) -> None:
    rows = ("t1,ann,m,failed,1,0", "t2,ann,m,failed,1,0", "t1,bob,m,failed,1,0")
    report = report_on(cli, tmp_path, *rows, args=("--annotator", "bob"))
    assert report["groups"]["m"]["traces"] == 1
    report = cli("report", "--json", "--annotator", "newcomer").json
    assert report["groups"] == {}
    # That nobody had finished any would not be true.
    assert report["cannot_say"] == [
        "No trace that anybody has finished under mast@3 counts here; there is no figure."
    ]


def test_figures_where_no_folder_can_be_made_are_refused_in_a_line(
    study: Cli, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine", "utf-8")
    done = study("report", "--figures", "file/figures")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "cannot be created" in done.err
    assert (tmp_path / "file").read_text("utf-8") == "mine"


def test_one_report_is_written_in_every_language_at_once(study: Cli, tmp_path: Path) -> None:
    files = ("--html", "r.html", "--markdown", "r.md", "--csv", "r.csv", "--latex", "r.tex")
    done = study("report", *files, "--figures", "drawn", "--bare", "--rounds", "0")
    assert done.code == 0, done.err
    page, text, rows, tex = (
        (tmp_path / f"r.{end}").read_text("utf-8") for end in ("html", "md", "csv", "tex")
    )
    for name in ("GPT-OSS-120B", "Gemini-3-Flash"):
        assert name in page
        assert f"## {name}" in text
        assert name in tex
        assert any(f",{name}," in row for row in rows.splitlines())
    (drawn,) = (tmp_path / "drawn").glob("prevalence-gpt-oss-120b.svg")
    assert 'class="v-t v-h"' not in drawn.read_text("utf-8")
    assert page.count("<svg") == len(list((tmp_path / "drawn").iterdir()))
    # What is one's own is replaced, and nothing at all where two would be one.
    assert study("report", *files, "--rounds", "0").code == 0
    assert study("report", "--html", "a", "--csv", "a").code == 2
    assert study("report", "--bare").code == 2


def test_images_that_cannot_be_drawn_here_are_refused_in_a_sentence(
    study: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    done = study("report", "--figures", "drawn", "--figures-format", "pdf", "--html", "r.html")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "mast-tui[figures]" in done.err
    assert not (tmp_path / "drawn").exists()
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("score", ["nan", "inf", "much"])
def test_what_is_no_score_is_refused(study: Cli, score: str) -> None:
    done = study("report", "--json", "--failed-below", score)
    assert (done.code, "--failed-below" in done.err) == (2, True)


def test_modes_that_never_meet_are_not_most_often_together(cli: Cli, tmp_path: Path) -> None:
    report_on(cli, tmp_path, "t1,ann,m,failed,1,0", "t2,ann,m,failed,0,1")
    assert "together" not in cli("report").out


def test_one_persons_labels_are_not_called_gold(cli: Cli, tmp_path: Path) -> None:
    rows = [f"t{i},ann,m,{'failed' if i % 2 else 'succeeded'},{i % 2},0" for i in range(8)]
    report = report_on(cli, tmp_path, *rows)
    assert report["gold"] == {
        "sources": {"unanimous": 0, "majority": 0, "adjudicated": 0, "single": 16, "unresolved": 0},
        "traces": {"unanimous": 0, "majority": 0, "adjudicated": 0, "single": 8, "unresolved": 0},
        "annotators": ["ann"],
        "settled_only": False,
        "not_in_study": {},
        "merged": 0,
    }
    assert report["labels"] == report["labels_kind"] == "gold"
    words = "ann's, one person's and so no gold (verdicts: 16 single)"
    assert f"labels: {words}" in " ".join(cli("report").out.split())
    assert cli("report", "--html", "page.html", "--figures", "drawn").code == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    assert words.replace("'", "&#x27;") in page
    assert "agreed on" not in page
    for figure in (tmp_path / "drawn").glob("*.svg"):
        assert "one person" in figure.read_text("utf-8"), figure
    # Nothing of it is settled, so nothing is left.
    settled = cli("report", "--json", "--gold", "settled").json
    assert settled["traces"]["labelled"] == 0
    assert settled["gold"]["sources"]["single"] == 0


def test_gold_says_what_it_is_made_of_and_settled_takes_only_what_two_say(
    cli: Cli, tmp_path: Path
) -> None:
    both = [f"t{i},{name},m,failed,1,{int(name == 'bob')}" for i in range(3) for name in NAMES]
    report = report_on(cli, tmp_path, *both, "t7,ann,m,failed,1,1", "t8,bob,m,failed,0,?")
    # On 3.3 they differ; on t8 bob is unsure of it, which is a word of his too.
    assert report["gold"]["sources"] == {
        "unanimous": 3, "majority": 0, "adjudicated": 0, "single": 4, "unresolved": 3
    }  # fmt: skip
    assert report["gold"]["traces"] == {
        "unanimous": 3, "majority": 0, "adjudicated": 0, "single": 2, "unresolved": 3
    }  # fmt: skip
    assert "labels: gold (verdicts: 3 unanimous, 4 single, 3 unresolved)" in cli("report").out
    settled = cli("report", "--json", "--gold", "settled").json
    assert settled["traces"]["labelled"] == 3
    assert settled["groups"]["m"]["modes"]["1.1"]["n"] == 3
    assert settled["groups"]["m"]["modes"]["3.3"]["n"] == 0
    assert "gold, only what is settled (verdicts: 3 unanimous, 3 unresolved)" in " ".join(
        cli("report", "--gold", "settled").out.split()
    )
    assert cli("report", "--labels", "ann", "--gold", "settled").code == 2
    assert cli("report", "--labels", "ann", "--json").json["gold"] is None


def test_settled_gold_is_what_a_judge_is_measured_by_and_what_is_exported(
    cli: Cli, tmp_path: Path
) -> None:
    both = [f"t{i},{name},m,failed,1,0" for i in range(2) for name in NAMES]
    report_on(cli, tmp_path, *both, "t7,ann,m,failed,1,1")
    workspace = Workspace.open(tmp_path / ".mast-tui" / "workspace.db")
    workspace.add_annotator(JUDGE, AnnotatorKind.JUDGE)
    slugs = [mode.slug for mode in load_mast().modes if mode.code in ("1.1", "3.3")]
    for trace in ("t0", "t1", "t7"):
        store_judgement(
            workspace,
            judge=JUDGE,
            taxonomy=load_mast().ref,
            trace_id=trace,
            looks_at=slugs,
            findings=[],
        )
    workspace.close()
    judged = cli("agree", "--judge", "rules", "--json", "--rounds", "0").json["judge"]
    assert judged["gold"]["sources"]["single"] == 2
    assert judged["gold"]["sources"]["unanimous"] == 4
    told = " ".join(cli("agree", "--judge", "rules", "--rounds", "0").out.split())
    assert "What it is measured by: gold (verdicts: 4 unanimous, 2 single)." in told
    args = ("--judge", "rules", "--rounds", "0", "--json")
    settled = cli("agree", "--gold", "settled", *args).json["judge"]
    assert settled["traces"]["compared"] == 2
    assert settled["gold"]["sources"]["single"] == 0
    assert settled["left_out"]["unresolved"] == 0
    assert cli("agree", "--against", "ann", *args).json["judge"]["gold"] is None
    assert cli("agree", "--gold", "settled").code == 2
    assert cli("agree", "--gold", "settled", "--against", "ann", *args).code == 2

    assert cli("export", "--format", "gold", "-o", "gold.json", "--gold", "settled").code == 0
    gold = json.loads((tmp_path / "gold.json").read_text("utf-8"))
    assert [trace["trace_id"] for trace in gold["traces"]] == ["t0", "t1"]
    assert gold["gold"]["sources"]["unanimous"] == 4
    assert gold["gold"]["settled_only"] is True
    sheet = (tmp_path / "gold.datasheet.md").read_text("utf-8")
    assert "one person alone are left out" in sheet
    assert cli("export", "--format", "gold", "-o", "all.json").code == 0
    everything = json.loads((tmp_path / "all.json").read_text("utf-8"))
    assert everything["gold"]["sources"]["single"] == 2
    assert cli("export", "--format", "csv-wide", "-o", "x.csv", "--gold", "settled").code == 2


def test_over_several_models_the_figures_within_them_stand_beside(cli: Cli, tmp_path: Path) -> None:
    # Of the strong model hardly a run fails and many show the mode; of the weak one it is reversed.
    counts = {"strong": (18, 20, 60, 80), "weak": (24, 80, 2, 20), "": (1, 2, 0, 1)}
    rows = []
    for model, (a, n, b, of) in counts.items():
        for outcome, shows, many in (("failed", a, n), ("succeeded", b, of)):
            for i in range(many):
                rows.append(f"{model}{outcome}{i},ann,{model},{outcome},{int(i < shows)},0")
    report = report_on(cli, tmp_path, *rows, args=("--by", "all"))
    stratified = report["groups"]["all"]["stratified"]
    assert (stratified["by"], stratified["strata"], stratified["left_out"]) == (
        "model",
        ["strong", "weak"],
        3,
    )
    one = stratified["modes"]["1.1"]
    assert (one["strata"], one["n"]) == (2, 200)
    assert one["difference_pp"] == pytest.approx(17.5)
    assert report["groups"]["all"]["modes"]["1.1"]["difference_pp"] < 0
    assert stratified["reversed"] == ["1.1"]
    assert stratified["modes"]["3.3"]["undefined"] == "never_seen"
    text = " ".join(cli("report", "--by", "all").out.split())
    assert "within 2 models" in text
    assert "Disobey task specification 2 200 +18 [" in text
    assert "misleads (Simpson's paradox): 1.1." in text
    assert cli("report", "--by", "all", "--html", "page.html").code == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "within 2 models" in page
    assert "paradox" in page
    by_model = cli("report", "--json").json
    assert {group["stratified"] for group in by_model["groups"].values()} == {None}


def runs_labelled(cli: Cli, tmp_path: Path, outcomes: str | None) -> dict[str, str]:
    """Three runs beside an ``outcomes.csv``, two of them labelled; their ids by file name."""
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
    assert cli("judge", "runs", "--judge", "rules", "--quiet").code == 0
    files = cli("inspect", "runs", "--json").json["files"]
    ids = {Path(file["path"]).name: file["traces"][0]["id"] for file in files}
    write(tmp_path / "labels.csv", *(f"{ids[f'{name}.json']},ann,,,1,0" for name in "ab"))
    assert cli("import", "labels.csv", "--format", "csv-wide").code == 0
    return ids


def outcomes_told(cli: Cli) -> tuple[int, int, int]:
    traces = cli("report", "--json").json["traces"]
    return traces["failed"], traces["succeeded"], traces["unknown"]


def test_outcomes_that_come_or_are_corrected_later_count(cli: Cli, tmp_path: Path) -> None:
    ids = runs_labelled(cli, tmp_path, None)
    outcomes = tmp_path / "runs" / "outcomes.csv"
    assert outcomes_told(cli) == (0, 0, 2)
    outcomes.write_text(f"trace,outcome,model\na.json,failed,m1\n{ids['b.json']},failed,m2\n")
    assert outcomes_told(cli) == (2, 0, 0)
    assert set(cli("report", "--json").json["groups"]) == {"m1", "m2"}
    outcomes.write_text("trace,outcome\na.json,failed\nb.json,succeeded\n")
    assert outcomes_told(cli) == (1, 1, 0)
    # What is not on this machine any more keeps what was known of it.
    (tmp_path / "runs" / "b.json").unlink()
    outcomes.write_text("trace,outcome\na.json,succeeded\nb.json,failed\n")
    assert outcomes_told(cli) == (0, 2, 0)


def test_what_a_trace_itself_tells_goes_before_outcomes(cli: Cli, tmp_path: Path) -> None:
    runs_labelled(cli, tmp_path, None)
    run = {"messages": [{"role": "user", "content": "do it"}], "reward": 1.0}
    (tmp_path / "runs" / "a.json").write_text(json.dumps(run), "utf-8")
    assert cli("judge", "runs", "--judge", "rules", "--quiet").code == 0
    [file] = cli("inspect", "runs/a.json", "--json").json["files"]
    write(tmp_path / "more.csv", f"{file['traces'][0]['id']},ann,,,1,0")
    assert cli("import", "more.csv", "--format", "csv-wide").code == 0
    (tmp_path / "runs" / "outcomes.csv").write_text("trace,outcome\na.json,failed\n")
    assert outcomes_told(cli)[1] == 1


def test_rows_of_outcomes_that_match_nothing_are_named(cli: Cli, tmp_path: Path) -> None:
    rows = "a.json,failed\nc.json,failed\nd.json,failed\nb,perhaps\n"
    runs_labelled(cli, tmp_path, f"trace,outcome\n{rows}")
    done = cli("report")
    [said] = [line for line in done.err.splitlines() if "match no file" in line]
    assert "2 of 4 rows" in said
    assert "line 4: 'd.json'" in said
    assert "c.json" not in said, "nobody has labelled it yet, and it is there"
    assert "line 5: outcome is 'perhaps'" in done.err
    [told] = cli("inspect", "runs", "--json").json["skipped"]
    assert [problem["place"] for problem in told["problems"]] == ["line 5", "line 4", "line 5"]
    assert "2 match a trace" in told["reason"]


def test_two_models_are_paired_task_by_task(cli: Cli, tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "go"}]
    for model in ("m", "o"):
        for task in range(6):
            record = {"messages": talk, "model": model, "task_id": f"task {task}"}
            (tmp_path / f"{model}{task}.json").write_text(json.dumps(record))
    assert cli("report", "--paired", "m,o", "--compare", "m,o").code == 2
    assert cli("report", "--paired", "m,o", "--by", "all").code == 2
    assert cli("report", "--paired", "m").code == 2
    report = report_on(
        cli, tmp_path, *(f"{m}{i},ann,{m},failed,{int(m == 'm')},0" for m in "mo" for i in range(3))
    )
    assert report["paired"] is None
    done = cli("report", "--paired", "m,o")
    assert done.code == 1
    assert "no known task was run by both" in done.err


def test_a_bill_needs_places(cli: Cli, tmp_path: Path) -> None:
    report_on(cli, tmp_path, "t1,ann,m,failed,1,0")
    assert cli("report", "--bill", "--without-places").code == 2
    report = cli("report", "--bill", "--json").json
    # No label of it names a span, so nothing tells when the run was lost.
    assert report["groups"]["m"]["bill"] is None


def test_what_helps_is_told_in_text_and_json(cli: Cli, tmp_path: Path) -> None:
    helps = report_on(cli, tmp_path, "t1,ann,m,failed,1,0")["what_helps"]
    assert helps["strategies"]["1.1"]
    assert helps["measured"]["source"]["url"].startswith("https://arxiv.org/")
    shown = " ".join(cli("report").out.split())
    assert helps["strategies"]["1.1"][0] in shown
    assert helps["measured"]["source"]["url"] in shown


def test_records_are_the_figures_of_the_document(cli: Cli, tmp_path: Path) -> None:
    rows = [f"t{i},ann,m{i % 2},{('failed', 'succeeded')[i % 3 == 0]},{i % 2},0" for i in range(20)]
    document = report_on(cli, tmp_path, *rows)
    lines = [json.loads(line) for line in cli("report", "--records").out.splitlines()]
    by_field = {
        tuple(line[key] for key in ("scope", "group", "mode", "condition", "statistic")): line
        for line in lines
    }
    assert len(by_field) == len(lines)
    for name, group in ({"": document["overall"]} | document["groups"]).items():
        assert by_field["group", name, "", "failed", "traces"]["value"] == group["failed"]
        for code, mode in group["modes"].items():
            for side in ("all", "failed", "succeeded"):
                record = by_field["mode", name, code, side, "rate"]
                assert (record["value"], record["count"], record["n"]) == tuple(
                    mode[side][key] for key in ("rate", "count", "n")
                )
            points = by_field["mode", name, code, "", "difference"]["value"]
            assert (None if points is None else 100 * points) == mode["difference_pp"]
    assert by_field["mode", "m1", "1.1", "failed", "rate"]["sources"] == {
        "part": "signatures",
        "modes": ["disobey_task_specification"],
        "subject": [],
        "group": "m1",
        "where": [["outcome", "failed"]],
    }
    assert cli("report", "--records", "--output", "r.csv").code == 0
    assert len((tmp_path / "r.csv").read_text("utf-8").splitlines()) == len(lines) + 1
    for options, words in (
        (("--output", "a.csv"), "give --records too"),
        (("--records", "--json"), "leave out --json"),
        (("--records", "--output", "a.txt"), "use an extension out of .jsonl, .csv, .parquet"),
    ):
        refused = cli("report", *options)
        assert refused.code == 2
        assert words in refused.err
