"""``agree`` as scripts and papers use it: JSON, tables, files, and the traces behind a figure."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Container, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from mast_tui.figures.record import COEFFICIENTS
from mast_tui.judges.rules import RULES, RulesJudge
from mast_tui.labels import AnnotatorKind, Target
from mast_tui.session import Session
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_file, read_fully
from mast_tui.workspace import Workspace
from mast_tui.workspace.paths import find_workspace
from mast_tui.workspace.registers.hold_out import set_split
from tests.cli.conftest import Cli
from tests.figures.agreement.build_reports import figures_in

MAST = load_mast()
SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
JUDGE = RulesJudge(RULES).name
FEW = ("--rounds", 20)


def words(folder: Path, said: dict[str, str]) -> Path:
    """A csv-long file: per person a letter per trace for 1.1; everything else is absent."""
    lines = ["trace_id,annotator,mode,value"]
    for name, letters in said.items():
        for number, letter in enumerate(letters):
            value = {"1": "present", "0": "absent", "?": "unsure"}[letter]
            lines.append(f"t{number},{name},1.1,{value}")
            lines += [f"t{number},{name},{mode.code},absent" for mode in MAST.modes[1:]]
            lines.append(f"t{number},{name},,finished")
    path = folder / "labels.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def two(cli: Cli, tmp_path: Path) -> Cli:
    """Ann and bob have finished eight traces."""
    cli("import", words(tmp_path, {"ann": "11010010", "bob": "11001011"}), "--format", "csv-long")
    return cli


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the labels that come with the samples, their traces at hand."""
    place = tmp_path_factory.mktemp("samples") / "workspace.db"
    for command in (
        ("import", str(SAMPLES / "workspace.jsonl"), "--format", "jsonl"),
        ("judge", str(SAMPLES), "--judge", "rules", "--rules", "all", "--quiet"),
    ):
        # click keeps what it has wrapped a stream in, and pytest's own streams come and go.
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            assert run(split_command([*command, "--workspace", str(place)])) == 0
    return place


@pytest.fixture
def samples(cli: Cli, labelled: Path, tmp_path: Path) -> Cli:
    """Commands on a copy of that workspace."""
    place = tmp_path / ".mast-tui"
    place.mkdir()
    shutil.copy(labelled, place / "workspace.db")
    return cli


def test_json_holds_places_and_the_judge_and_no_figure_without_value_or_reason(
    samples: Cli,
) -> None:
    report = samples("agree", "--judge", "rules", *FEW, "--json").json
    assert report["spans"]["traces"]["compared"] > 0
    assert report["spans"]["traces"]["not_at_hand"] == 0
    assert (report["judge"]["judge"], report["judge"]["against"]) == (JUDGE, "gold")
    assert report["judge"]["left_out"]["judge_seen"] > 0
    found = list(figures_in(report))
    assert len(found) > 500
    for figure in found:
        assert ("undefined" in figure) is (figure["value"] is None)
        ends = figure.get("ci")
        assert ends is None or ends[0] <= figure["value"] <= ends[1]


def test_records_are_the_figures_of_the_document_in_every_format(two: Cli, tmp_path: Path) -> None:
    document = two("agree", *FEW, "--json").json
    lines = [json.loads(line) for line in two("agree", *FEW, "--records").out.splitlines()]
    by_name = {
        (line["scope"], line["mode"], line["statistic"]): line
        for line in lines
        if not line["subject"]
    }
    for code, mode in document["modes"].items():
        for name in COEFFICIENTS:
            record = by_name["mode", code, name]
            assert (record["value"], record["n"]) == (mode[name]["value"], mode[name]["n"])
            reason = mode[name].get("undefined") or mode[name].get("ci_withheld", "")
            assert record["reason"] == reason
            assert record["sources"]["modes"] == [mode["slug"]]
    assert by_name["pooled", "", "pabak"]["low"] == document["pooled"]["pabak"]["ci"][0]
    files = [tmp_path / f"records{ending}" for ending in (".jsonl", ".csv", ".parquet")]
    for file in files:
        assert two("agree", *FEW, "--records", "--output", file).code == 0
    assert [json.loads(line) for line in files[0].read_text().splitlines()] == lines
    rows = list(csv.DictReader(files[1].read_text().splitlines()))
    table = parquet.read_table(files[2]).to_pylist()
    for line, row, of_table in zip(lines, rows, table, strict=True):
        value = "" if line["value"] is None else repr(line["value"])
        assert (row["statistic"], row["value"]) == (line["statistic"], value)
        assert (of_table["value"], of_table["n"]) == (line["value"], line["n"])
        assert row["subject"] == of_table["subject"] == "|".join(line["subject"])
        assert json.loads(of_table["sources"]) == json.loads(row["sources"]) == line["sources"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--output", "a.csv"), "give --records too"),
        (("--records", "--json"), "leave out --json"),
        (("--methods", "--records"), "--methods prints one paragraph"),
        (("--records", "--traces", "1.1"), "leave out --traces"),
        (("--records", "--output", "a.txt"), "use an extension out of .jsonl, .csv, .parquet"),
    ],
)
def test_records_and_methods_stand_alone(two: Cli, options: tuple[str, ...], words: str) -> None:
    refused = two("agree", *options)
    assert refused.code == 2
    assert words in refused.err


def test_methods_are_a_paragraph_of_the_data_without_names(two: Cli, tmp_path: Path) -> None:
    pooled = two("agree", *FEW, "--json").json["pooled"]
    page, tables = tmp_path / "a.html", tmp_path / "a.md"
    printed = two("agree", *FEW, "--methods", "--html", page, "--markdown", tables)
    low, high = pooled["raw_agreement"]["ci"]
    for sentence in (
        "2 annotators labelled traces with 14 failure modes of the taxonomy mast@3",
        "both of them finished 8 traces",
        f"{pooled['n']} units with two verdicts",
        f"raw agreement {pooled['raw_agreement']['value']:.2f} [{low:.2f}, {high:.2f}]",
        f"Cohen's κ {pooled['cohen_kappa']['value']:.2f};",
        "Cohen's κ (Cohen 1960; Light 1971)",
        "jackknife (Tukey 1958)",
        "κ is undefined for 13 of 14 modes (no variance: 13).",
    ):
        assert sentence in printed.out
    assert printed.out.count("\n") == 1
    assert "ann" not in printed.out.replace("annotator", "")
    assert "<h2>Methods</h2>\n<p>2 annotators" in page.read_text()
    assert "## Methods\n\n2 annotators" in tables.read_text()
    alone = two("agree", "--annotators", "ann", *FEW, "--methods")
    assert (alone.out, alone.code) == ("", 0)
    assert "needs two annotators" in alone.err


def test_records_name_no_person_with_pseudonyms(two: Cli) -> None:
    out = two("agree", *FEW, "--records", "--pseudonyms").out
    assert '"subject": ["A", "B"]' in out
    assert '"ann"' not in out
    assert '"bob"' not in out


def test_a_judge_can_be_held_against_one_person(samples: Cli) -> None:
    options = ("--against", "mira", "--rounds", 0, "--no-spans")
    report = samples("agree", "--judge", JUDGE, *options, "--json").json
    assert report["judge"]["against"] == "mira"
    assert report["judge"]["pooled"]["n"] > 20
    text = samples("agree", "--judge", "judge:r", *options).out
    assert f"{JUDGE} against mira" in text
    unknown = samples("agree", "--judge", "rules", "--against", "nobody")
    assert (unknown.code, unknown.err.count("\n")) == (1, 1)


def test_a_judges_name_must_be_told_from_others(two: Cli, tmp_path: Path) -> None:
    assert "run 'mast-tui judge' first" in two("agree", "--judge", "rules").err
    workspace = Workspace.open(tmp_path / ".mast-tui" / "workspace.db")
    for name in ("judge:small@1", "judge:smaller@1"):
        workspace.add_annotator(name, AnnotatorKind.JUDGE)
    workspace.close()
    several = two("agree", "--judge", "small")
    assert several.code == 1
    assert "matches judge:small@1, judge:smaller@1" in several.err
    for name in ("smaller", "judge:small@1"):
        assert two("agree", "--judge", name, "--rounds", 0).code == 0


def test_without_trace_files_the_part_on_places_says_so(two: Cli) -> None:
    report = two("agree", *FEW, "--json").json
    assert report["spans"]["traces"] == {"compared": 0, "not_at_hand": 8}
    assert "order of the spans of the 8 traces" in two("agree", *FEW).out
    assert two("agree", "--no-spans", *FEW, "--json").json["spans"] is None
    assert "Places were not compared." in two("agree", "--no-spans", *FEW).out


def test_rounds_and_seed_stand_in_what_they_made(two: Cli) -> None:
    report = two("agree", "--rounds", 30, "--seed", 7, "--json").json
    assert report["bootstrap"] == {"rounds": 30, "seed": 7, "level": 0.95, "unit": "trace"}
    assert report == two("agree", "--rounds", 30, "--seed", 7, "--json").json
    text = " ".join(two("agree", "--rounds", 30, "--seed", 7).out.split())
    assert "[a, b] is a 95 % interval (jackknife over traces)." in text
    assert "[–]: too few traces (or traces × modes) for an interval, which needs" in text
    none = two("agree", "--rounds", 0, "--json").json
    assert all(figure.get("ci") is None for figure in figures_in(none))


FILES = {
    "--html": ("page.html", "<!doctype html>", "Cohen", "the report as a page"),
    "--latex": (
        "paper.tex",
        "% Agreement: ann and bob on mast@3",
        "tab:agreement-modes",
        "tables for LaTeX",
    ),
    "--markdown": ("paper.md", "# Agreement", "Table: ", "the report as Markdown"),
    "--csv": ("figures.csv", "", "few_traces", ""),
}
"""For each option a file, how it begins, what it holds and how it is reported."""


def test_other_files_are_written_beside_the_text(two: Cli, tmp_path: Path) -> None:
    options = [word for option, (name, *_) in FILES.items() for word in (option, name)]
    done = two("agree", *FEW, *options)
    assert done.out.startswith("Agreement\n")
    for name, beginning, part, reported in FILES.values():
        content = (tmp_path / name).read_text("utf-8")
        assert content.lower().startswith(beginning.lower())
        assert part in content
        assert f"{name}: {reported}" in done.err


def test_json_for_one_person_says_on_stderr_that_it_takes_two(two: Cli) -> None:
    done = two("agree", *FEW, "--annotators", "ann", "--json")
    assert done.json["annotators"] == ["ann"]
    assert "Agreement needs two annotators" in done.err
    text = two("agree", *FEW, "--annotators", "ann")
    assert "Agreement needs two annotators" in text.out
    assert text.err == ""


def test_traces_behind_a_mode_come_with_the_disagreements_first(two: Cli) -> None:
    lines = two("agree", "--traces", "1.1").out.splitlines()
    assert lines[0] == "1.1 Disobey task specification: 8 traces, 3 with a disagreement"
    assert [line.startswith("≠") for line in lines[2:]] == [True] * 3 + [False] * 5
    document = two("agree", "--traces", "disobey_task_specification", "--json").json
    first = document["traces"][0]
    assert (first["trace"], first["said"]) == ("t3", {"ann": "present", "bob": "absent"})
    unknown = two("agree", "--traces", "9.9")
    assert (unknown.code, "no mode '9.9'" in unknown.err) == (1, True)


def test_an_annotator_sees_what_they_have_finished_and_no_prevalence_while_blind(
    samples: Cli,
) -> None:
    options = ("agree", "--judge", "rules", "--no-spans", "--rounds", 0, "--json", "--annotator")
    seen = samples(*options, "mira").json
    assert seen["traces"]["finished_by_all"] > 0
    assert seen["judge"]["prevalence"]
    assert samples(*options, "mira", "--blind").json["judge"]["prevalence"] == {}
    stranger = samples(*options, "dave").json
    assert stranger["traces"]["finished_by_all"] == 0
    assert stranger["judge"]["pooled"]["n"] == 0


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--against", "gold"), 2),
        (("--json", "--markdown", "-"), 2),
        (("--traces", "1.1", "--csv", "x.csv"), 2),
        (("--rounds", "-1"), 2),
        (("--csv", "x.csv", "--latex", "x.csv"), 2),
        (("--csv", "nowhere/x.csv"), 1),
        (("--markdown", "."), 1),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    two: Cli, tmp_path: Path, options: tuple[str, ...], code: int
) -> None:
    done = two("agree", *options)
    assert (done.code, done.out) == (code, "")
    assert not list(tmp_path.glob("*.csv.*"))
    assert not (tmp_path / "x.csv").exists()


def test_two_judges_are_compared_on_the_same_units(cli: Cli, tmp_path: Path) -> None:
    rows = ["trace_id,annotator,mode,value,span_first,span_last"]
    for name, wrong in (("ann", ()), ("judge:one@1", (0,)), ("judge:two@1", (0, 1, 2))):
        for i in range(8):
            present = (i % 2 == 0) != (i in wrong)
            rows.append(f"t{i},{name},1.3,{'present' if present else 'absent'},,")
            rows.append(f"t{i},{name},,finished,,")
    (tmp_path / "words.csv").write_text("\n".join(rows) + "\n")
    assert cli("import", "words.csv", "--format", "csv-long").code == 0
    arguments = ("agree", "--judge", "one", "--judge", "two", "--against", "ann", "--rounds", 0)
    done = cli(*arguments, "--json", "--csv", "out.csv")
    found = done.json["judges"]
    assert found["judges"] == ["judge:one@1", "judge:two@1"]
    counts = ("n", "both_right", "only_first_right", "only_second_right", "neither_right")
    assert [found["modes"]["1.3"][name] for name in counts] == [8, 5, 2, 0, 1]
    assert "judges_compared" in (tmp_path / "out.csv").read_text("utf-8")
    assert "judge:one@1 (1) and judge:two@1 (2) against ann" in cli(*arguments).out
    assert "judges" not in cli(*arguments[:3], *arguments[5:], "--json").json
    for wrong_words in (
        ("agree", "--judge", "one", "--judge", "one"),
        ("agree", "--judge", "one", "--judge", "two", "--judge", "one"),
        ("agree", "--judge", "one", "--judge", "two", "--traces", "1.3"),
    ):
        assert cli(*wrong_words).code == 2


FOUND = (0, 1, 2, 9)
"""Where the judge finds 1.1; ann finds it in t0 to t5."""


def judge_table(folder: Path, finished: Container[int], *, absent: bool = True) -> Path:
    """Write a judge's table on 1.1 of t0 to t11, with its absent verdicts or without."""
    lines = ["trace_id,annotator,mode,value"]
    for number in range(12):
        value = "present" if number in FOUND else "absent"
        if value == "present" or absent:
            lines.append(f"t{number},judge:m@1,1.1,{value}")
        if number in finished:
            lines.append(f"t{number},judge:m@1,,finished")
    path = folder / "judge.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def measured(cli: Cli) -> dict[str, Any]:
    """The figures of the judge against ann."""
    answer = cli("agree", "--judge", "judge:m@1", "--against", "ann", "--rounds", 0, "--json")
    found: dict[str, Any] = json.loads(answer.out)["judge"]
    return found


@pytest.mark.parametrize(
    ("absent", "finished", "options", "counts"),
    [
        pytest.param(True, range(12), (), (3, 1, 3, 5), id="all verdicts"),
        pytest.param(True, range(8), (), (3, 0, 3, 2), id="four traces unfinished"),
        pytest.param(False, range(12), (), (3, 1, 3, 5), id="findings and finished rows"),
        pytest.param(False, (), ("--finished",), (3, 1, 0, 0), id="declared finished"),
        pytest.param(True, (), (), (0, 0, 3, 5), id="no finished row"),
        pytest.param(False, (), (), None, id="findings only"),
    ],
)
def test_a_judges_verdict_counts_only_where_it_finished_the_trace(
    cli: Cli,
    tmp_path: Path,
    absent: bool,
    finished: Sequence[int],
    options: tuple[str, ...],
    counts: tuple[int, ...] | None,
) -> None:
    cli("import", words(tmp_path, {"ann": "111111000000"}), "--format", "csv-long")
    table = judge_table(tmp_path, finished, absent=absent)
    answer = cli("import", table, "--format", "csv-long", "--allow-new", *options)
    if counts is None:
        assert answer.code == 1
        assert "judge:m@1" in answer.err
        assert "'finished' row" in answer.err
        assert "--finished" in answer.err
        return
    assert answer.code == 0
    judge = measured(cli)
    mode = judge["modes"]["1.1"]
    names = ("true_positives", "false_positives", "false_negatives", "true_negatives")
    assert tuple(mode[name] for name in names) == counts
    named = 12 if absent or finished else len(FOUND)
    assert judge["traces"]["judged"] + judge["left_out"]["unfinished"] == named
    signatures = json.loads(cli("report", "--labels", "judge:m@1", "--rounds", 0, "--json").out)
    assert signatures["traces"]["labelled"] == judge["traces"]["judged"]


def test_a_judge_may_finish_a_trace_in_a_later_table(cli: Cli, tmp_path: Path) -> None:
    cli("import", words(tmp_path, {"ann": "111111000000"}), "--format", "csv-long")
    for finished in (range(8), range(12)):
        table = judge_table(tmp_path, finished)
        assert cli("import", table, "--format", "csv-long", "--allow-new").code == 0
    judge = measured(cli)
    assert judge["traces"]["judged"] == 12
    assert judge["left_out"]["unfinished"] == 0


def test_time_tells_what_suggestions_save_and_pull(cli: Cli, tmp_path: Path) -> None:
    for number in range(6):
        talk = [{"role": "user", "content": f"do {number}"}, {"role": "tool", "content": "done"}]
        (tmp_path / f"run{number}.json").write_text(json.dumps({"messages": talk}))
    files = sorted(tmp_path.glob("run*.json"))
    cli("study", "set", *files, "--annotators", "ann,bob", "--withhold", 0.5)
    none = cli("agree", "--time")
    assert none.code == 1
    assert "no one has finished a trace with suggestions shown" in none.err
    cli("judge", *files, "--judge", "rules", "--quiet")
    with closing(Workspace.open(find_workspace(None))) as workspace:
        for who in ("ann", "bob"):
            for file in files:
                (trace,) = read_file(file, named=True).traces
                read_fully(trace)
                session = Session.open(workspace, trace, MAST, who, blind=False)
                key = trace.span(0).key
                target = Target(key, key)
                session.toggle_label(MAST.modes[0].slug, target, suggestions_on_screen=False)
                session.finish(open_modes="absent")
    document = cli("agree", "--time", "--json", "--annotator", "ann").json
    assert document["annotators"] == ["ann", "bob"]
    assert document["shown"]["passes"] + document["withheld"]["passes"] == 12
    assert document["withheld"]["passes"] == 6
    # The rules suggest nothing here, and every verdict is on a mode that they do not suggest.
    assert document["modes"]["1.1"]["other_units"] == 12
    assert document["modes"]["1.1"]["other"]["value"] == 0
    assert document["anchoring"]["suggested"]["value"] is None
    assert document["minutes_difference"]["ci_withheld"] == "few_traces"
    text = cli("agree", "--time", "--annotator", "ann").out
    assert "suggestions hidden" in text
    assert "where a judge suggests it" in text
    assert cli("agree", "--time", "--judge", "rules").code == 2


def test_thresholds_are_fitted_on_calibration_traces_and_measured_on_others(
    cli: Cli, tmp_path: Path
) -> None:
    truths = {f"t{number}": number % 2 == 0 for number in range(60)}
    lines = ["trace_id,annotator,mode,value,confidence"]
    for trace_id, truth in truths.items():
        sure = 0.9 if truth else 0.2
        lines += [
            f"{trace_id},ann,1.1,{'present' if truth else 'absent'},",
            f"{trace_id},ann,,finished,",
            f"{trace_id},judge:m@1,1.1,present,{sure}",
            f"{trace_id},judge:m@1,,finished,",
        ]
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    done = cli("import", "labels.csv", "--format", "csv-long")
    assert done.code == 0, done.err
    arguments = ("agree", "--judge", "judge:m@1", "--thresholds", "--rounds", 0, "--json")
    none = cli(*arguments)
    assert none.code == 1
    assert "study set --split" in none.err
    with closing(Workspace.open(find_workspace(None))) as workspace:
        set_split(workspace, 0.4, 0.2)
    measured_now = cli(*arguments)
    judge = measured_now.json["judge"]
    assert judge["thresholds"]["modes"]["1.1"]["value"] == pytest.approx(0.55)
    calibration = judge["thresholds"]["calibration_traces"]
    assert judge["modes"]["1.1"]["n"] == 60 - calibration
    assert judge["modes"]["1.1"]["true_negative_rate"]["value"] == 1
    assert "1.1 over 0.55" in measured_now.err
    plain = cli("agree", "--judge", "judge:m@1", "--rounds", 0, "--json").json["judge"]
    assert plain["modes"]["1.1"]["true_negative_rate"]["value"] == 0
    assert "thresholds" not in plain
    assert cli("agree", "--thresholds").code == 2
