"""Messages of imports, exports and inspect: one line for equal problems, and what helps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from mast_tui.traces.library import samples_folder
from tests.cli.conftest import Cli

SAMPLES: Final = samples_folder()
HEAD: Final = "trace_id,annotator,mode,value\n"


def rows(tmp_path: Path, *lines: str, name: str = "l.csv") -> Path:
    path = tmp_path / name
    path.write_text(HEAD + "".join(f"{line}\n" for line in lines))
    return path


def test_equal_problems_are_one_line_with_their_number(cli: Cli, tmp_path: Path) -> None:
    file = rows(tmp_path, *(f"t{n},gold,1.1,present" for n in range(40)), "t,ada,9.9,present")
    done = cli("import", file, "--format", "csv-long")
    assert done.code == 1
    gold, other, advice = done.err.splitlines()
    assert gold == (
        f'mast-tui import: {file}: "gold" is reserved. Import under another name: --annotator NAME '
        "(40 times: line 2, line 3, line 4 and 37 more)"
    )
    assert other.startswith(f"mast-tui import: {file}: line 42: mode '9.9' is none of")
    assert advice == "mast-tui import: nothing was written. Fix the rows"
    problems = cli("import", file, "--format", "csv-long", "--json").json["problems"]
    assert len(problems) == 41  # a script gets each of them


@pytest.mark.parametrize(
    ("lines", "advice"),
    [
        (["t,gold,1.1,present"], ""),
        (["t,gold,1.1,present", "t,ada,1.1,present"], ". --skip-errors imports the other rows"),
        (["t,ada,9.9,present"], ". Fix the rows"),
        (
            ["t,ada,9.9,present", "t,ada,1.1,present"],
            ". Fix the rows. --skip-errors imports the other rows",
        ),
        (["other,ada,1.1,present"], ". --allow-new accepts new names"),
        (["t,zoe,1.1,absent"], ". --allow-new accepts new names"),
    ],
)
def test_the_advice_names_what_helps(
    cli: Cli, tmp_path: Path, lines: list[str], advice: str
) -> None:
    cli("import", rows(tmp_path, "t,ada,1.2,present", name="a.csv"), "--format", "csv-long")
    done = cli("import", rows(tmp_path, *lines), "--format", "csv-long")
    assert done.err.splitlines()[-1] == f"mast-tui import: nothing was written{advice}"


def test_gold_of_ones_own_comes_back_under_another_name(cli: Cli, tmp_path: Path) -> None:
    cli("import", SAMPLES / "workspace.jsonl", "--format", "jsonl")
    cli("export", "--format", "mast-data", "-o", "gold.json")
    done = cli("import", "gold.json", "--format", "mast-data")
    assert done.code == 1
    assert len(done.err.splitlines()) == 2
    assert '"gold" is reserved. Import under another name: --annotator NAME (' in done.err
    second_run = cli(
        "import", "gold.json", "--format", "mast-data", "--annotator", "experts", "--allow-new"
    )
    assert second_run.code == 0


@pytest.mark.parametrize(("file_format", "unit"), [("csv-wide", "row"), ("mast-data", "record")])
def test_a_format_of_verdicts_counts_no_labels(
    cli: Cli, tmp_path: Path, file_format: str, unit: str
) -> None:
    file = rows(tmp_path, "t,ada,1.1,present", "t,ada,1.2,absent", "t,ada,,finished")
    cli("import", file, "--format", "csv-long")
    arguments = ("export", "--format", file_format, "--labels", "ada", "-o", tmp_path / "out")
    assert cli(*arguments).out == f"{tmp_path / 'out'}: 1 trace, 1 {unit}\n"
    counts = cli(*arguments, "--json").json
    assert (counts["labels"], counts["traces"], counts[f"{unit}s"]) == (0, 1, 1)


def test_an_import_leads_with_what_is_new(cli: Cli, tmp_path: Path) -> None:
    file = rows(tmp_path, "t,ada,1.1,present", "t,ada,1.2,absent")
    first = cli("import", file, "--format", "csv-long").out.splitlines()
    assert first[0] == (
        "3 new events. The file contains 1 label and 1 verdict by ada on 1 trace (mast@3)"
    )
    second_output = cli("import", file, "--format", "csv-long").out
    assert second_output == (
        "Nothing is new: 3 events were in the workspace already. The file contains 1 label and "
        "1 verdict by ada on 1 trace (mast@3)\n"
    )
    cli("export", "--format", "jsonl", "-o", "all.jsonl")
    known = cli("import", "all.jsonl", "--format", "jsonl").out
    assert known.startswith(
        "Nothing is new: 3 events were in the workspace already. The file contains 1 label "
    )
    fresh = cli("import", "all.jsonl", "--format", "jsonl", "--workspace", "other.db").out
    assert fresh.startswith("3 new events. The file contains ")


def test_a_study_that_comes_along_is_named(cli: Cli, tmp_path: Path) -> None:
    lead = ("--workspace", "lead.db")
    done = cli("study", "set", SAMPLES, "--annotators", "ada,ben", "--annotator", "cho", *lead)
    assert done.code == 0, done.err
    cli("export", "--format", "jsonl", "-o", "all.jsonl", *lead)
    out = cli("import", "all.jsonl", "--format", "jsonl").out
    assert "cho: 1 study set up or changed" in out.splitlines()


def test_inspect_ends_with_a_sum(cli: Cli, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "gone"}]
    (tmp_path / "run.json").write_text(json.dumps({"messages": messages}))
    assert cli("inspect", "run.json").out.splitlines()[-1] == "1 trace, 1 format, 0 problems"
    lines = cli("inspect", SAMPLES).out.splitlines()
    assert lines[-1].endswith(" problems")
    files = cli("inspect", SAMPLES, "--json").json["files"]
    traces = sum(len(file["traces"]) for file in files)
    formats = len({file["format"] for file in files if file["traces"]})
    problems = sum(len(file["problems"]) for file in files)
    assert lines[-1] == f"{traces} traces, {formats} formats, {problems} problems"


def test_equal_problems_of_a_file_are_one_line_of_inspect(cli: Cli, tmp_path: Path) -> None:
    good = json.dumps({"type": "user", "uuid": "a", "message": {"role": "user", "content": "go"}})
    broken = "{broken\n" * 5
    later = good.replace("go", "on").replace('"a"', '"b"')
    (tmp_path / "run.jsonl").write_text(f"{good}\n{broken}{later}\n")
    problems = cli("inspect", "run.jsonl", "--json").json["files"][0]["problems"]
    alike = len({problem["message"] for problem in problems})
    out = cli("inspect", "run.jsonl").out
    assert alike < len(problems)
    listed = out.partition("problems\n")[2].strip().splitlines()
    assert len([line for line in listed if "run.jsonl" in line]) == alike
    assert "(5 times: line 2, line 3, line 4 and 2 more)" in out
