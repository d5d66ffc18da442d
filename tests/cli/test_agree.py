"""``mast-tui agree``: its document, tables, records, methods and judges."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Container, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from pyarrow import parquet

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from mast_tui.figures.record import COEFFICIENTS
from mast_tui.judges.rules import RULES, RulesJudge
from mast_tui.labels import Target
from mast_tui.session import Session
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_file, read_fully
from mast_tui.workspace.registers.hold_out import set_split
from tests.cli.conftest import COLUMNS, Cli, open_workspace
from tests.figures.agreement.build_reports import figures_in

MAST = load_mast()
SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
JUDGE = RulesJudge(RULES).name
FEW_ROUNDS = ("--rounds", 20)


def labels_of(verdicts: dict[str, str]) -> list[str]:
    """Return csv-long rows: per annotator a letter per trace for 1.1, all else absent."""
    values = {"1": "present", "0": "absent", "?": "unsure"}
    rows = []
    for name, letters in verdicts.items():
        for number, letter in enumerate(letters):
            rows.append(f"t{number},{name},1.1,{values[letter]}")
            rows += [f"t{number},{name},{mode.code},absent" for mode in MAST.modes[1:]]
            rows.append(f"t{number},{name},,finished")
    return rows


@pytest.fixture
def study(cli: Cli) -> Cli:
    """A command line with a workspace in which ann and bob have finished eight traces."""
    cli.label(*labels_of({"ann": "11010010", "bob": "11001011"}))
    return cli


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the labels and the traces of the samples."""
    path = tmp_path_factory.mktemp("samples") / "workspace.db"
    for command in (
        ("import", str(SAMPLES / "workspace.jsonl"), "--format", "jsonl"),
        ("judge", str(SAMPLES), "--judge", "rules", "--rules", "all", "--quiet"),
    ):
        # Click caches its wrapper of a stream, and pytest replaces its own streams.
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            assert run(split_command([*command, "--workspace", str(path)])) == 0
    return path


@pytest.fixture
def samples(cli: Cli, labelled: Path, tmp_path: Path) -> Cli:
    """A command line with a copy of that workspace."""
    folder = tmp_path / ".mast-tui"
    folder.mkdir()
    shutil.copy(labelled, folder / "workspace.db")
    return cli


def test_every_figure_has_a_value_or_a_reason(samples: Cli) -> None:
    report = samples.json("agree", "--judge", "rules", *FEW_ROUNDS)
    assert report["spans"]["traces"]["compared"] > 0
    assert report["spans"]["traces"]["not_at_hand"] == 0
    assert (report["judge"]["judge"], report["judge"]["against"]) == (JUDGE, "gold")
    assert report["judge"]["left_out"]["judge_seen"] > 0
    figures = list(figures_in(report))
    assert len(figures) > 500
    for figure in figures:
        assert ("undefined" in figure) is (figure["value"] is None)
        ends = figure.get("ci")
        assert ends is None or ends[0] <= figure["value"] <= ends[1]

    # The judge may be compared with one annotator.
    options = ("--against", "mira", "--rounds", 0, "--no-spans")
    judged = samples.json("agree", "--judge", JUDGE, *options)["judge"]
    assert judged["against"] == "mira"
    assert judged["pooled"]["n"] > 20
    assert f"{JUDGE} against mira" in samples("agree", "--judge", "judge:r", *options).out
    refused = samples.refused("agree", "--judge", "rules", "--against", "nobody")
    assert refused.err.count("\n") == 1

    # An annotator sees figures of the traces they have finished, and while blind no prevalence.
    as_annotator = ("agree", "--judge", "rules", "--no-spans", "--rounds", 0, "--annotator")
    mira = samples.json(*as_annotator, "mira")
    assert mira["traces"]["finished_by_all"] > 0
    assert mira["judge"]["prevalence"]
    assert samples.json(*as_annotator, "mira", "--blind")["judge"]["prevalence"] == {}
    unknown = samples.json(*as_annotator, "dave")
    assert (unknown["traces"]["finished_by_all"], unknown["judge"]["pooled"]["n"]) == (0, 0)


def test_records_of_every_format_have_the_documents_figures(study: Cli, tmp_path: Path) -> None:
    document = study.json("agree", *FEW_ROUNDS)
    lines = [json.loads(line) for line in study("agree", *FEW_ROUNDS, "--records").out.splitlines()]
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
        study.ok("agree", *FEW_ROUNDS, "--records", "--output", file)
    assert [json.loads(line) for line in files[0].read_text().splitlines()] == lines
    rows = list(csv.DictReader(files[1].read_text().splitlines()))
    table = parquet.read_table(files[2]).to_pylist()
    for line, row, entry in zip(lines, rows, table, strict=True):
        value = "" if line["value"] is None else repr(line["value"])
        assert (row["statistic"], row["value"]) == (line["statistic"], value)
        assert (entry["value"], entry["n"]) == (line["value"], line["n"])
        assert row["subject"] == entry["subject"] == "|".join(line["subject"])
        assert json.loads(entry["sources"]) == json.loads(row["sources"]) == line["sources"]
    pseudonymous = study("agree", *FEW_ROUNDS, "--records", "--pseudonyms").out
    assert '"subject": ["A", "B"]' in pseudonymous
    assert not {'"ann"', '"bob"'} & set(re.findall(r'"\w+"', pseudonymous))


def test_methods_are_a_paragraph_without_names(study: Cli, tmp_path: Path) -> None:
    pooled = study.json("agree", *FEW_ROUNDS)["pooled"]
    page = tmp_path / "a.html"
    tables = tmp_path / "a.md"
    printed = study("agree", *FEW_ROUNDS, "--methods", "--html", page, "--markdown", tables)
    low, high = pooled["raw_agreement"]["ci"]
    for sentence in (
        "2 annotators labelled traces with 14 failure modes of the taxonomy mast@3",
        "8 traces were finished by both",
        f"({pooled['n']} units with at least two verdicts)",
        f"raw agreement {pooled['raw_agreement']['value']:.2f} [{low:.2f}, {high:.2f}]",
        f"Cohen's κ {pooled['cohen_kappa']['value']:.2f};",
        "Cohen's κ (Cohen 1960; Light 1971)",
        "jackknife (Tukey 1958)",
        "κ is undefined for 13 of 14 modes (no variance: 13 modes).",
    ):
        assert sentence in printed.out
    assert printed.out.count("\n") == 1
    assert "ann" not in printed.out.replace("annotator", "")
    assert "<h2>Methods</h2>\n<p>2 annotators" in page.read_text()
    assert "## Methods\n\n2 annotators" in tables.read_text()


def test_figures_of_one_annotator_are_reported_as_undefined(study: Cli) -> None:
    alone = ("agree", "--annotators", "ann", *FEW_ROUNDS)
    result = study.ok(*alone, "--methods")
    assert (result.out, "needs two annotators" in result.err) == ("", True)
    result = study(*alone, "--json")
    assert result.json["annotators"] == ["ann"]
    assert "Agreement needs two annotators" in result.err
    text = study(*alone)
    assert ("Agreement needs two annotators" in text.out, text.err) == (True, "")


def test_a_judges_name_must_be_unique(study: Cli) -> None:
    assert "run 'mast-tui judge' first" in study("agree", "--judge", "rules").err
    for name in ("judge:small@1", "judge:smaller@1"):
        Path("judge.csv").write_text(f"trace_id,annotator,mode,value\nt1,{name},1.1,absent\n")
        study.ok("import", "judge.csv", "--format", "csv-long", "--allow-new")
    study.refused("agree", "--judge", "small", says="matches judge:small@1, judge:smaller@1")
    study.ok("agree", "--judge", "smaller", "--rounds", 0)
    study.ok("import", "--undo")
    study.ok("agree", "--judge", "small", "--rounds", 0)


def test_places_need_the_files_of_traces(study: Cli) -> None:
    report = study.json("agree", *FEW_ROUNDS)
    assert report["spans"]["traces"] == {"compared": 0, "not_at_hand": 8}
    assert "files of the 8 traces" in study("agree", *FEW_ROUNDS).out
    assert study.json("agree", "--no-spans", *FEW_ROUNDS)["spans"] is None
    assert "Places were not compared." in study("agree", "--no-spans", *FEW_ROUNDS).out


def test_intervals_follow_from_rounds_and_seed(study: Cli) -> None:
    seeded = ("agree", "--rounds", 30, "--seed", 7)
    report = study.json(*seeded)
    assert report["bootstrap"] == {"rounds": 30, "seed": 7, "level": 0.95, "unit": "trace"}
    assert report == study.json(*seeded)
    text = " ".join(study(*seeded).out.split())
    assert "(jackknife over traces)." in text
    assert "[–] no interval: it needs" in text
    without_rounds = study.json("agree", "--rounds", 0)
    assert all(figure.get("ci") is None for figure in figures_in(without_rounds))


FILES = {
    "--html": ("page.html", "<!doctype html>", "Cohen", "the report as a page"),
    "--latex": (
        "paper.tex",
        "% Agreement: ann and bob; mast@3",
        "tab:agreement-modes",
        "tables for LaTeX",
    ),
    "--markdown": ("paper.md", "# Agreement", "Table: ", "the report as Markdown"),
    "--csv": ("figures.csv", "", "few_traces", ""),
}
"""The name, beginning, a part and the reported description of each option's file."""


def test_other_files_are_written_beside_the_text(study: Cli, tmp_path: Path) -> None:
    options = [word for option, (name, *_) in FILES.items() for word in (option, name)]
    result = study("agree", *FEW_ROUNDS, *options)
    assert result.out.startswith("Agreement\n")
    for name, beginning, part, reported in FILES.values():
        content = (tmp_path / name).read_text("utf-8")
        assert content.lower().startswith(beginning.lower())
        assert part in content
        assert f"{name}: {reported}" in result.err


def test_the_traces_of_a_mode_begin_with_the_disagreements(study: Cli) -> None:
    lines = study("agree", "--traces", "1.1").out.splitlines()
    assert lines[0] == "1.1 Disobey task specification: 8 traces, 3 with a disagreement"
    assert [line.startswith("≠") for line in lines[2:]] == [True] * 3 + [False] * 5
    first = study.json("agree", "--traces", "disobey_task_specification")["traces"][0]
    assert (first["trace"], first["said"]) == ("t3", {"ann": "present", "bob": "absent"})
    study.refused("agree", "--traces", "9.9", says="no mode '9.9'")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ("--against gold", 2, ""),
        ("--json --markdown -", 2, ""),
        ("--traces 1.1 --csv x.csv", 2, ""),
        ("--rounds -1", 2, ""),
        ("--csv x.csv --latex x.csv", 2, ""),
        ("--csv nowhere/x.csv", 1, ""),
        ("--markdown .", 1, ""),
        ("--output a.csv", 2, "give --records too"),
        ("--records --json", 2, "leave out --json"),
        ("--methods --records", 2, "--methods prints one paragraph"),
        ("--records --traces 1.1", 2, "leave out --traces"),
        ("--records --output a.txt", 2, "use an extension out of .jsonl, .csv, .parquet"),
        ("--judge one --judge one --judge one", 2, ""),
        ("--judge one --judge two --judge one", 2, ""),
        ("--judge one --judge two --traces 1.3", 2, ""),
        ("--time --judge rules", 2, ""),
        ("--thresholds", 2, ""),
    ],
)
def test_wrong_options_are_refused_and_nothing_is_written(
    study: Cli, options: str, code: int, message: str
) -> None:
    previous = sorted(Path().iterdir())
    study.refused("agree", *options.split(), says=message, code=code)
    assert sorted(Path().iterdir()) == previous


def test_two_judges_are_compared_on_the_same_units(cli: Cli) -> None:
    rows = []
    for name, wrong in (("ann", ()), ("judge:one@1", (0,)), ("judge:two@1", (0, 1, 2))):
        for i in range(8):
            present = (i % 2 == 0) != (i in wrong)
            rows.append(f"t{i},{name},1.3,{'present' if present else 'absent'}")
            rows.append(f"t{i},{name},,finished")
    cli.label(*rows)
    first_alone = ("agree", "--judge", "one", "--against", "ann", "--rounds", 0)
    both = (*first_alone, "--judge", "two")
    cli.refused(*first_alone, "--judge", "one", code=2)
    judges = cli.json(*both, "--csv", "out.csv")["judges"]
    assert judges["judges"] == ["judge:one@1", "judge:two@1"]
    counts = ("n", "both_right", "only_first_right", "only_second_right", "neither_right")
    assert [judges["modes"]["1.3"][name] for name in counts] == [8, 5, 2, 0, 1]
    assert "judges_compared" in Path("out.csv").read_text("utf-8")
    assert "judge:one@1 (1) and judge:two@1 (2) against ann" in cli(*both).out
    assert "judges" not in cli.json(*first_alone)


PRESENT = (0, 1, 2, 9)
"""The traces in which the judge finds 1.1; ann finds it in t0 to t5."""


def judge_table(finished: Container[int], *, absent: bool = True) -> Path:
    """Write a judge's table on 1.1 of t0 to t11, with its absent verdicts or without."""
    lines = [COLUMNS]
    for number in range(12):
        value = "present" if number in PRESENT else "absent"
        if value == "present" or absent:
            lines.append(f"t{number},judge:m@1,1.1,{value}")
        if number in finished:
            lines.append(f"t{number},judge:m@1,,finished")
    path = Path("judge.csv")
    path.write_text("\n".join(lines) + "\n")
    return path


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
def test_a_judges_verdict_counts_only_if_it_finished_the_trace(
    cli: Cli,
    absent: bool,
    finished: Sequence[int],
    options: tuple[str, ...],
    counts: tuple[int, ...] | None,
) -> None:
    cli.label(*labels_of({"ann": "111111000000"}))
    table = judge_table(finished, absent=absent)
    arguments = ("import", table, "--format", "csv-long", "--allow-new", *options)
    if counts is None:
        cli.refused(*arguments, says=("judge:m@1", "'finished' row", "--finished"))
        return
    cli.ok(*arguments)
    agree = ("agree", "--judge", "judge:m@1", "--against", "ann", "--rounds", 0)
    judge = cli.json(*agree)["judge"]
    names = ("true_positives", "false_positives", "false_negatives", "true_negatives")
    assert tuple(judge["modes"]["1.1"][name] for name in names) == counts
    labelled_traces = 12 if absent or finished else len(PRESENT)
    assert judge["traces"]["judged"] + judge["left_out"]["unfinished"] == labelled_traces
    signatures = cli.json("report", "--labels", "judge:m@1", "--rounds", 0)
    assert signatures["traces"]["labelled"] == judge["traces"]["judged"]
    if len(finished) == 8:  # a later table finishes the other traces
        cli.ok("import", judge_table(range(12)), "--format", "csv-long")
        judge = cli.json(*agree)["judge"]
        assert (judge["traces"]["judged"], judge["left_out"]["unfinished"]) == (12, 0)


def test_time_compares_passes_with_and_without_suggestions(cli: Cli, tmp_path: Path) -> None:
    for number in range(6):
        talk = [{"role": "user", "content": f"do {number}"}, {"role": "tool", "content": "done"}]
        (tmp_path / f"run{number}.json").write_text(json.dumps({"messages": talk}))
    files = sorted(tmp_path.glob("run*.json"))
    cli.ok("study", "set", *files, "--annotators", "ann,bob", "--withhold", 0.5)
    message = "no one has finished a trace with suggestions shown"
    cli.refused("agree", "--time", says=message)
    cli.ok("judge", *files, "--judge", "rules", "--quiet")
    with open_workspace() as workspace:
        for name in ("ann", "bob"):
            for file in files:
                (trace,) = read_file(file, named=True).traces
                read_fully(trace)
                session = Session.open(workspace, trace, MAST, name, blind=False)
                target = Target(trace.span(0).key, trace.span(0).key)
                session.toggle_label(MAST.modes[0].slug, target, suggestions_on_screen=False)
                session.finish(open_modes="absent")
    document = cli.json("agree", "--time", "--annotator", "ann")
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
    assert "suggested by a judge" in text


def test_thresholds_are_fitted_on_calibration_traces_and_measured_on_others(cli: Cli) -> None:
    rows = []
    for number in range(60):
        value, confidence = ("present", 0.9) if number % 2 == 0 else ("absent", 0.2)
        rows += [f"t{number},ann,1.1,{value},", f"t{number},ann,,finished,"]
        rows += [f"t{number},judge:m@1,1.1,present,{confidence}", f"t{number},judge:m@1,,finished,"]
    cli.label(*rows, columns=f"{COLUMNS},confidence")
    arguments = ("agree", "--judge", "judge:m@1", "--rounds", 0, "--json")
    cli.refused(*arguments, "--thresholds", says="study set --split")
    with open_workspace() as workspace:
        set_split(workspace, 0.4, 0.2)
    judge = cli.ok(*arguments, "--thresholds").json["judge"]
    assert judge["thresholds"]["modes"]["1.1"]["value"] == pytest.approx(0.55)
    calibration = judge["thresholds"]["calibration_traces"]
    assert judge["modes"]["1.1"]["n"] == 60 - calibration
    assert judge["modes"]["1.1"]["true_negative_rate"]["value"] == 1
    text = cli.ok(*arguments[:-1], "--thresholds").out
    assert "1.1 above 0.55" in " ".join(text.split())
    plain = cli.ok(*arguments).json["judge"]
    assert plain["modes"]["1.1"]["true_negative_rate"]["value"] == 0
    assert "thresholds" not in plain
