"""Labels and outcomes that commands show to each user, and the record of what was shown."""

from __future__ import annotations

import csv
import json
import re
import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from mast_tui.labels import AnnotatorKind, Finding, PassKind
from mast_tui.session import remember_person, resolve_blind
from mast_tui.study import Study
from mast_tui.taxonomy.loader import load_mast
from mast_tui.workspace import NewEvent, Workspace, store_judgement
from mast_tui.workspace.events.types import PassFinished, PassStarted, StudySet
from mast_tui.workspace.paths import find_workspace
from mast_tui.workspace.records import AnnotatorInfo
from tests.cli.conftest import Cli, CliResult

MAST = load_mast()
JUDGE = "judge:rules@1"
CODES = [mode.code for mode in MAST.modes]
VERDICTS = {
    "mira": {"t1": "1", "t2": "1", "t3": "0"},
    "tomas": {"t1": "1", "t2": "0", "t3": "0"},
    "bob": {"t1": "0"},
}


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which mira and tomas have finished three traces that failed, and bob one.

    A judge has looked at four; carol has labelled nothing.
    """
    folder = tmp_path_factory.mktemp("sight")
    path = folder / "workspace.db"
    with closing(Workspace.open(path)) as workspace:
        workspace.add_annotator("carol", AnnotatorKind.HUMAN)
    head = ["trace_id", "annotator", "model", "outcome", *CODES]
    rows = [
        [trace, name, "m", "failed", first, *("0" * (len(CODES) - 1))]
        for name, verdicts in VERDICTS.items()
        for trace, first in verdicts.items()
    ]
    file = folder / "labels.csv"
    file.write_text("\n".join(",".join(row) for row in [head, *rows]) + "\n", "utf-8")
    options = ("--format", "csv-wide", "--allow-new", "--workspace", str(path))
    assert run(split_command(["import", str(file), *options])) == 0
    mode = MAST.modes[0].slug
    with closing(Workspace.open(path)) as workspace:
        for trace in ("t1", "t2", "t3", "t4"):
            store_judgement(
                workspace,
                judge=JUDGE,
                taxonomy=MAST.ref,
                trace_id=trace,
                looks_at=[mode],
                findings=[Finding(mode, None, None, "so", 0.5)],
            )
    return path


def copy_workspace(labelled: Path, folder: Path) -> Path:
    """Put a copy of that workspace into the folder in which commands run."""
    target = folder / ".mast-tui"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for file in labelled.parent.glob("workspace.db*"):
        shutil.copy(file, target / file.name)
    return target / "workspace.db"


@pytest.fixture
def database(labelled: Path, tmp_path: Path) -> Path:
    return copy_workspace(labelled, tmp_path)


@dataclass(frozen=True)
class Asker:
    """The annotator of the login, the annotator who works blind, and options of commands."""

    login: str | None = None
    blind: str | None = None
    args: tuple[str, ...] = ()

    def sign_in(self, path: Path) -> None:
        with closing(Workspace.open(path)) as workspace:
            if self.blind is not None:
                resolve_blind(workspace, self.blind, blind=True)
            if self.login is not None:
                remember_person(workspace, self.login)


UNNAMED = Asker()
LEAD = Asker("carol")
BLIND = Asker("bob", "bob")
BLIND_NAMED = Asker(None, "bob", ("--annotator", " bob "))
BLIND_FOR_ONCE = Asker(None, None, ("--annotator", "bob", "--blind"))
BLIND_AS_TOMAS = Asker("bob", "bob", ("--annotator", "tomas"))
ASSISTED = Asker("bob")
UNKNOWN = Asker(None, None, ("--annotator", "dave", "--blind"))

EVERYTHING = {(name, trace) for name, verdicts in VERDICTS.items() for trace in verdicts} | {
    (JUDGE, f"t{number}") for number in range(1, 5)
}
OF_T1 = {("mira", "t1"), ("tomas", "t1"), ("bob", "t1"), (JUDGE, "t1")}
SUGGESTIONS = {(JUDGE, "t2"), (JUDGE, "t3"), (JUDGE, "t4")}
LIMITED = [BLIND, BLIND_NAMED, BLIND_FOR_ONCE, BLIND_AS_TOMAS]
VISIBLE = [
    *((asker, EVERYTHING) for asker in (UNNAMED, LEAD)),
    *((asker, OF_T1) for asker in LIMITED),
    (ASSISTED, OF_T1 | SUGGESTIONS),
    (UNKNOWN, set()),
]
ASKER_IDS = ["unnamed", "lead", "blind", "named", "for-once", "as-tomas", "assisted", "unknown"]


def traces_of_people(visible: set[tuple[str, str]]) -> set[str]:
    """Return the traces of which labels of other people are shown."""
    return {trace for name, trace in visible if name in ("mira", "tomas")}


def revealed(path: Path) -> set[tuple[str, str]]:
    """Return the annotators and traces that are recorded as shown."""
    with closing(Workspace.open(path)) as workspace:
        return {
            (labelling.annotator, labelling.trace_id)
            for labelling in workspace.passes(taxonomy=MAST.ref)
            if labelling.revealed_at is not None
        }


def check_left_out(document: Any, asker: Asker, count: int) -> None:
    """Check what a document reports as left out, for whom and why."""
    if asker in (UNNAMED, LEAD):
        assert "sight" not in document
        return
    name = "dave" if asker == UNKNOWN else "bob"
    assert document["sight"] | {"outcomes_hidden": 0} == document["sight"] | {
        "annotator": name,
        "left_out": count,
        "reason": "hidden_until_finished",
        "blind": asker != ASSISTED,
        "outcomes_hidden": 0,
    }


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(("asker", "visible"), VISIBLE, ids=ASKER_IDS)
def test_commands_show_what_their_user_may_see_and_record_it_for_that_user_only(
    cli: Cli, labelled: Path, tmp_path: Path, asker: Asker, visible: set[tuple[str, str]]
) -> None:
    def ask(*options: object) -> CliResult:
        """Run a command in a fresh copy of the workspace."""
        path = copy_workspace(labelled, tmp_path)
        asker.sign_in(path)
        result = (
            cli(*options, "--force", *asker.args) if "-o" in options else cli(*options, *asker.args)
        )
        is_limited = asker in LIMITED or asker == ASSISTED
        assert revealed(path) == ({("bob", "t1")} if is_limited else set())
        assert result.code == (1 if asker == UNKNOWN and options[0] == "status" else 0), result.err
        return result

    shown_traces = traces_of_people(visible)
    hidden = 3 - len(shown_traces)
    export = ("export", "--labels", "all", "--format", "csv-long", "-o", "x.csv", "--json")
    document = ask(*export).json
    assert {(row["annotator"], row["trace_id"]) for row in rows_of(tmp_path / "x.csv")} == visible
    check_left_out(document, asker, len({trace for _, trace in EVERYTHING - visible}))
    if asker in (BLIND_NAMED, BLIND_FOR_ONCE):
        return  # every command resolves these options in the same way

    result = ask("export", "--format", "csv-wide", "--labels", "tomas", "-o", "y.csv")
    rows = rows_of(tmp_path / "y.csv")
    assert {row["trace_id"] for row in rows} == shown_traces
    # Once a trace is recorded as shown, its outcome is no longer hidden.
    assert {row["outcome"] for row in rows} <= {"failed"}
    assert ("left out" in result.err) is (hidden > 0)

    gold_export = ("export", "--format", "gold", "-o", "gold.json", "--json")
    if not shown_traces:
        asker.sign_in(copy_workspace(labelled, tmp_path))
        refused = cli(*gold_export, *asker.args)
        assert (refused.code, "labels on 3 traces are left out" in refused.err) == (1, True)
        assert not (tmp_path / "gold.json").exists()
        return
    document = ask(*gold_export).json
    gold = json.loads((tmp_path / "gold.json").read_text("utf-8"))
    assert {trace["trace_id"] for trace in gold["traces"]} == shown_traces
    assert gold["agreement"]["traces"]["finished_by_two"] == len(shown_traces)
    judged = gold["judges"][JUDGE]["traces"]
    # On t1 and t2 people differ, so there is no gold to compare a judge with.
    assert judged["compared"] == ("t3" in shown_traces)
    assert judged["unlabelled"] == ((JUDGE, "t4") in visible)
    check_left_out(document, asker, hidden)
    sheet = (tmp_path / "gold.datasheet.md").read_text("utf-8")
    assert ("hidden from" in sheet) is (hidden > 0)

    document = ask("agree", "--rounds", 0, "--no-spans", "--json").json
    assert document["traces"]["finished_by_two"] == len(shown_traces)
    check_left_out(document, asker, hidden)
    document = ask("agree", "--traces", "1.1", "--json").json
    assert {trace["trace"] for trace in document["traces"]} == shown_traces
    check_left_out(document, asker, hidden)

    for labels in ("gold", "tomas"):
        options = ("report", "--labels", labels, "--by", "all", "--rounds", 0, "--json")
        document = ask(*options).json
        group = document["groups"].get("all", {"traces": 0, "failed": 0})
        assert (group["traces"], group["failed"]) == (len(shown_traces), len(shown_traces))
        check_left_out(document, asker, hidden)

    result = ask("status", "--json")
    if asker == UNKNOWN:
        assert "no annotator 'dave'" in result.err
        return
    # On t1 bob differs from mira and tomas; on t2 these two differ.
    assert result.json["conflicts"]["left"] == len(shown_traces - {"t3"})
    check_left_out(result.json, asker, hidden)


JUDGE_REPORT = ("report", "--labels", JUDGE, "--by", "all", "--rounds", 0)


def judged_trace_count(cli: Cli, *options: str) -> int:
    """Return the number of traces in a report on the judge."""
    groups = cli.json(*JUDGE_REPORT, *options)["groups"]
    return sum(group["traces"] for group in groups.values())


@pytest.mark.parametrize(
    ("asker", "traces", "failed"),
    [(UNNAMED, 4, 3), (LEAD, 4, 3), (ASSISTED, 4, 3), (BLIND, 0, 0), (UNKNOWN, 0, 0)],
)
def test_a_report_on_a_judge_has_the_traces_with_suggestions_for_its_user(
    cli: Cli, database: Path, asker: Asker, traces: int, failed: int
) -> None:
    asker.sign_in(database)
    group = cli.json(*JUDGE_REPORT, *asker.args)["groups"].get("all", {"traces": 0, "failed": 0})
    assert (group["traces"], group["failed"]) == (traces, failed)


def test_exports_of_a_blind_annotators_own_labels_have_no_outcomes(
    cli: Cli, database: Path, tmp_path: Path
) -> None:
    BLIND.sign_in(database)
    summary = cli.json("export", "--format", "csv-wide", "--labels", "bob", "-o", "x.csv")
    assert summary["traces"] == 1
    rows = rows_of(tmp_path / "x.csv")
    assert [(row["trace_id"], row["outcome"]) for row in rows] == [("t1", "")]
    report = cli.json("report", "--labels", "bob", "--by", "all", "--rounds", 0)
    assert report["groups"]["all"]["unknown"] == 1
    assert report["sight"]["outcomes_hidden"] == 1
    # A whole workspace is exported as it is, and records nothing.
    whole = cli.json("export", "--format", "jsonl", "-o", "all.jsonl")
    assert whole["traces"] == 3
    assert revealed(database) == set()


def test_a_signed_in_annotator_cannot_use_another_name(cli: Cli, database: Path) -> None:
    BLIND.sign_in(database)
    for arguments in (
        ("agree", "--rounds", "0", "--no-spans"),
        ("status",),
        ("report", "--rounds", "0"),
        ("export", "--format", "gold", "-o", "g.json"),
    ):
        err = cli.ok(*arguments, "--annotator", "tomas").err
        assert "You are signed in as bob" in err
        assert "--annotator tomas does not change that" in err
        assert "labels on 2 traces are left out" in err
    queue = ("study", "queue", "--annotator", "tomas", "--kind", "disagreements")
    cli.refused(*queue, says="you are signed in as bob")
    assert {name for name, _ in revealed(database)} == {"bob"}


def annotator_info(database: Path, name: str) -> AnnotatorInfo | None:
    with closing(Workspace.open(database)) as workspace:
        return next((info for info in workspace.annotators() if info.name == name), None)


def is_blind(database: Path, name: str) -> bool | None:
    info = annotator_info(database, name)
    assert info is not None
    return info.blind


def test_assisted_is_recorded_and_blind_for_one_command_is_not(cli: Cli, database: Path) -> None:
    ASSISTED.sign_in(database)
    assert judged_trace_count(cli, "--annotator", "bob", "--blind") == 0
    assert is_blind(database, "bob") is None
    BLIND.sign_in(database)
    assert judged_trace_count(cli, "--assisted") == 4
    assert is_blind(database, "bob") is False


def set_study(database: Path, *annotators: str, **conditions: object) -> None:
    """Set up a study of three traces with carol as its adjudicator."""
    batches = (("t1", "t2", "t3"),)
    study = Study(MAST.ref, annotators, ("carol",), batches, **conditions)  # type: ignore[arg-type]
    with closing(Workspace.open(database)) as workspace:
        workspace.append([NewEvent("carol", None, MAST.ref, None, StudySet(None, study))])


def test_a_blind_study_makes_its_annotators_work_blind(cli: Cli, database: Path) -> None:
    set_study(database, "bob", "mira", blind=True)
    with closing(Workspace.open(database)) as workspace:
        remember_person(workspace, "bob")
    assert judged_trace_count(cli) == 0
    progress = cli.json("study", "show")["progress"]
    assert [row["name"] for row in progress] == ["bob"]


@pytest.mark.parametrize(
    ("name", "finished"), [("dave", 0), ("bob", 1)], ids=["unknown", "labels-outside-the-study"]
)
def test_a_blind_study_hides_suggestions_from_annotators_outside_it(
    cli: Cli, database: Path, tmp_path: Path, name: str, finished: int
) -> None:
    write_run(tmp_path)
    assert judged_trace_count(cli, "--annotator", name) == 4
    set_study(database, "mira", "tomas", blind=True)
    assert judged_trace_count(cli, "--annotator", name) == finished
    document = cli.json("judge", "run.json", "--judge", "rules", "--annotator", name)
    assert document["suggestions"] is None
    inspected = cli("inspect", "run.json", "--annotator", name, "--json")
    assert f"is blind, also for {name}, who is not in it;" in inspected.err
    assert [trace["outcome"] for trace in inspected.json["files"][0]["traces"]] == [None]
    # Adjudicators of the study and pipelines without a name see suggestions as before.
    assert judged_trace_count(cli, "--annotator", "carol") == judged_trace_count(cli) == 4
    assert annotator_info(database, "dave") is None  # asking registers no one
    # Leaving blind is recorded, of a new name too.
    assert judged_trace_count(cli, "--annotator", name, "--assisted") == 4
    assert is_blind(database, name) is False


def test_a_study_withholds_suggestions_from_annotators_outside_it(cli: Cli, database: Path) -> None:
    set_study(database, "mira", "tomas", blind=False, withheld=1.0)
    assert judged_trace_count(cli, "--annotator", "dave") <= 1  # t4 is not in the study


def test_an_adjudicator_who_labels_nothing_sees_everything(cli: Cli, database: Path) -> None:
    facts = (PassStarted(PassKind.ADJUDICATION), PassFinished())
    with closing(Workspace.open(database)) as workspace:
        workspace.append([NewEvent("carol", "t2", MAST.ref, 1, fact) for fact in facts])
        remember_person(workspace, "carol")
    document = cli.json("export", "--format", "gold", "-o", "gold.json")
    assert document["traces"] == 3
    assert "sight" not in document


@pytest.mark.parametrize(
    ("command", "option", "reason"),
    [
        ("export --format jsonl -o x", "--blind", "the whole workspace"),
        ("export --format jsonl -o x", "--assisted", "the whole workspace"),
        ("import x.csv --format csv-long", "--blind", "imports labels"),
        ("import x.csv --format csv-long", "--assisted", "imports labels"),
        ("study add", "--blind", "who works blind"),
        ("study show", "--assisted", "who works blind"),
        ("study queue --annotator bob", "--blind", "who works blind"),
        ("inspect x.json", "--taxonomy=own.toml", "reads traces"),
        ("convert x.json -o y", "--taxonomy=own.toml", "reads traces"),
        ("agree", "--blind", "--annotator NAME"),
        ("report", "--blind", "--annotator NAME"),
        ("status", "--blind", "--annotator NAME"),
        ("export --format gold -o g", "--blind", "--annotator NAME"),
    ],
)
def test_common_options_that_a_command_cannot_use_are_refused(
    cli: Cli, database: Path, tmp_path: Path, command: str, option: str, reason: str
) -> None:
    says = (option.partition("=")[0], reason)
    cli.refused(*command.split(), option, says=says, code=2)
    assert not (tmp_path / "g").exists()


def write_run(folder: Path) -> None:
    """Write a τ-bench run that failed, with its reward and the same call three times."""
    traj: list[dict[str, object]] = [{"role": "user", "content": "Cancel my order."}]
    for number in range(3):
        function = {"name": "look", "arguments": json.dumps({"order": "7"})}
        calls = [{"id": f"c{number}", "type": "function", "function": function}]
        traj.append({"role": "assistant", "content": None, "tool_calls": calls})
        traj.append({"role": "tool", "tool_call_id": f"c{number}", "name": "look", "content": "no"})
    row = {"task_id": 3, "reward": 0.0, "info": {"task": {"user_id": "u"}}, "traj": traj}
    (folder / "run.json").write_text(json.dumps([row]), "utf-8")


@pytest.mark.parametrize(
    ("asker", "hidden"),
    [
        (UNNAMED, False),
        (LEAD, False),
        (ASSISTED, False),
        (Asker("bob", "bob", ("--assisted",)), False),
        (BLIND, True),
        (BLIND_NAMED, True),
        (BLIND_AS_TOMAS, True),
        (Asker(None, None, ("--blind",)), True),
    ],
)
def test_inspect_convert_and_judge_hide_outcomes_and_suggestions(
    cli: Cli, database: Path, tmp_path: Path, asker: Asker, hidden: bool
) -> None:
    asker.sign_in(database)
    write_run(tmp_path)
    judge = ("judge", "run.json", "--judge", "rules", *asker.args)
    result = cli(*judge)
    assert (re.search(r"\d+ suggestions?\b", result.err + result.out) is None) is hidden
    assert ("Step repetition" in result.out) is not hidden
    judged = cli.json(*judge, "--again")
    assert judged["traces"]["judged"] == 1
    assert (judged["suggestions"] is None, judged["modes"] is None) == (hidden, hidden)
    cli("convert", "run.json", "-o", "out.jsonl", *asker.args)
    line = json.loads((tmp_path / "out.jsonl").read_text("utf-8"))
    assert (line["outcome"], line["score"]) == (("unknown", None) if hidden else ("failed", 0.0))
    assert bool(line["hidden"]) is not hidden
    assert len(line["spans"]) == 7
    # Last, since leaving blind holds from then on.
    table = cli("inspect", "run.json", *asker.args)
    assert (" hidden " in table.out, " failed " in table.out) == (hidden, not hidden)
    assert ("left out" in table.err) is hidden
    (trace,) = cli.json("inspect", "run.json", *asker.args)["files"][0]["traces"]
    assert trace["outcome"] == (None if hidden else "failed")


def test_inspect_hides_outcomes_if_the_workspace_is_damaged(cli: Cli, tmp_path: Path) -> None:
    write_run(tmp_path)
    (tmp_path / ".mast-tui").mkdir()
    find_workspace(None).write_text("no workspace")
    result = cli.ok("inspect", "run.json", "--json")
    assert result.json["files"][0]["traces"][0]["outcome"] is None
    assert "it is unknown who works blind" in result.err
    cli.refused("inspect", "run.json", "--workspace", "nowhere.db")


@pytest.mark.parametrize("name", ["gold", "ALL", "ｇｏｌｄ", "Judge:x", "mi\u3164ra"])
def test_reserved_and_invisible_names_are_refused_by_all_commands(
    cli: Cli, database: Path, tmp_path: Path, name: str
) -> None:
    long = f"trace_id,annotator,mode,value\nt1,{name},1.1,present\n"
    (tmp_path / "long.csv").write_text(long, "utf-8")
    (tmp_path / "wide.csv").write_text(f"trace_id,annotator,1.1\nt1,{name},1\n", "utf-8")
    record = {"trace_id": "t1", "annotator": name, "mast_annotation": {"1.1": 1}}
    (tmp_path / "data.json").write_text(json.dumps([record]), "utf-8")
    for arguments in (
        ("import", "long.csv", "--format", "csv-long"),
        ("import", "wide.csv", "--format", "csv-wide"),
        ("import", "data.json", "--format", "mast-data"),
        ("agree", "--annotator", name),
        ("export", "--format", "gold", "-o", "g.json", "--annotator", name),
        ("judge", "wide.csv", "--judge", "rules", "--annotator", name),
        ("study", "set", "--annotators", "mira,tomas", "--annotator", name),
    ):
        result = cli(*arguments)
        assert result.code in (1, 2), arguments
        assert "name" in result.err
    with closing(Workspace.open(database)) as workspace:
        names = {info.name for info in workspace.annotators()}
    assert names == {"mira", "tomas", "bob", "carol", JUDGE}


@pytest.mark.parametrize("name", ["mirа", "Mira", "ｍｉｒａ", "tornas", "b0b", "gоld"])
def test_a_new_name_that_looks_like_a_known_one_is_refused(
    cli: Cli, database: Path, tmp_path: Path, name: str
) -> None:
    rows = f"trace_id,annotator,mode,value\nt9,{name},1.1,present\n"
    (tmp_path / "long.csv").write_text(rows, "utf-8")
    existing = {"tornas": "tomas", "b0b": "bob", "gоld": "gold"}.get(name, "mira")
    imported = ("import", "long.csv", "--format", "csv-long", "--allow-new")
    cli.refused(*imported, says=("looks like", repr(existing)))
    study = ("study", "set", "--annotators", f"{name},ann", "--annotator", "carol")
    cli.refused(*study, says="looks like")


def test_similar_names_of_an_older_workspace_are_exported_and_imported(
    cli: Cli, tmp_path: Path
) -> None:
    with closing(Workspace.open(tmp_path / "old.db")) as old:
        old.add_annotators([("mira", AnnotatorKind.HUMAN), ("Mira", AnnotatorKind.HUMAN)])
    cli.ok("export", "--workspace", "old.db", "--format", "jsonl", "-o", "old.jsonl")
    for workspace in ("new.db", "old.db"):
        cli.ok("import", "--workspace", workspace, "old.jsonl", "--format", "jsonl")
