"""What a command shows to the one who asks, and what it records of that."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mast_tui.labels import AnnotatorKind, Finding, PassKind
from mast_tui.session import remember_person, resolve_blind
from mast_tui.study import Study
from mast_tui.taxonomy.loader import load_mast
from mast_tui.workspace import NewEvent, Workspace, store_judgement
from mast_tui.workspace.events.types import PassFinished, PassStarted, StudySet
from mast_tui.workspace.paths import find_workspace
from mast_tui.workspace.records import AnnotatorInfo
from tests.cli.conftest import Cli, Done

MAST = load_mast()
JUDGE = "judge:rules@1"
CODES = [mode.code for mode in MAST.modes]
SAID = {
    "mira": {"t1": "1", "t2": "1", "t3": "0"},
    "tomas": {"t1": "1", "t2": "0", "t3": "0"},
    "bob": {"t1": "0"},
}


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Mira and tomas have finished three traces, bob one, a judge has looked at four; carol leads.

    All of the first three have failed.
    """
    folder = tmp_path_factory.mktemp("sight")
    path = folder / "workspace.db"
    place = Workspace.open(path)
    place.add_annotator("carol", AnnotatorKind.HUMAN)
    place.close()
    head = ["trace_id", "annotator", "model", "outcome", *CODES]
    rows = [
        [trace, name, "m", "failed", first, *("0" * (len(CODES) - 1))]
        for name, said in SAID.items()
        for trace, first in said.items()
    ]
    file = folder / "labels.csv"
    file.write_text("\n".join(",".join(row) for row in [head, *rows]) + "\n", "utf-8")
    from mast_tui.cli.command_line import split_command
    from mast_tui.cli.dispatch import run

    arguments = [
        "import",
        str(file),
        "--format",
        "csv-wide",
        "--allow-new",
        "--workspace",
        str(path),
    ]
    assert run(split_command(arguments)) == 0
    place = Workspace.open(path)
    finding = Finding(MAST.modes[0].slug, None, None, "so", 0.5)
    for trace in ("t1", "t2", "t3", "t4"):
        store_judgement(
            place,
            judge=JUDGE,
            taxonomy=MAST.ref,
            trace_id=trace,
            looks_at=[MAST.modes[0].slug],
            findings=[finding],
        )
    place.close()
    return path


@pytest.fixture
def place(labelled: Path, tmp_path: Path) -> Path:
    """A copy of that workspace, in the folder in which commands run."""
    folder = tmp_path / ".mast-tui"
    folder.mkdir()
    for file in labelled.parent.glob("workspace.db*"):
        shutil.copy(file, folder / file.name)
    return folder / "workspace.db"


@dataclass(frozen=True)
class Asker:
    """Who asks: whom the login stands for, who works blind, and what the command line adds."""

    login: str | None = None
    blind: str | None = None
    args: tuple[str, ...] = ()

    def sit(self, path: Path) -> None:
        workspace = Workspace.open(path)
        if self.blind is not None:
            resolve_blind(workspace, self.blind, blind=True)
        if self.login is not None:
            remember_person(workspace, self.login)
        workspace.close()


NOBODY = Asker()
LEAD = Asker("carol")
BLIND = Asker("bob", "bob")
BLIND_NAMED = Asker(None, "bob", ("--annotator", "bob"))
BLIND_FOR_ONCE = Asker(None, None, ("--annotator", "bob", "--blind"))
BLIND_AS_TOMAS = Asker("bob", "bob", ("--annotator", "tomas"))
ASSISTED = Asker("bob")
STRANGER = Asker(None, None, ("--annotator", "dave", "--blind"))

EVERYTHING = {(name, trace) for name, said in SAID.items() for trace in said} | {
    (JUDGE, f"t{number}") for number in range(1, 5)
}
OF_T1 = {("mira", "t1"), ("tomas", "t1"), ("bob", "t1"), (JUDGE, "t1")}
SUGGESTIONS = {(JUDGE, "t2"), (JUDGE, "t3"), (JUDGE, "t4")}
LIMITED = [BLIND, BLIND_NAMED, BLIND_FOR_ONCE, BLIND_AS_TOMAS]
SIGHTS = [
    *((asker, EVERYTHING) for asker in (NOBODY, LEAD)),
    *((asker, OF_T1) for asker in (BLIND, BLIND_AS_TOMAS)),
    (ASSISTED, OF_T1 | SUGGESTIONS),
    (STRANGER, set()),
]


NAMED_SIGHTS = [(asker, OF_T1) for asker in (BLIND_NAMED, BLIND_FOR_ONCE)]
"""The sights of those whom the command line names: every command learns of them in one way."""


def people(seen: set[tuple[str, str]]) -> set[str]:
    """The traces on which what people say is shown, but one's own words alone."""
    return {trace for name, trace in seen if name in ("mira", "tomas")}


def revealed(path: Path) -> set[tuple[str, str]]:
    """For whom which trace is recorded as shown."""
    workspace = Workspace.open(path)
    found = {
        (labelling.annotator, labelling.trace_id)
        for labelling in workspace.passes(taxonomy=MAST.ref)
        if labelling.revealed_at is not None
    }
    workspace.close()
    return found


@pytest.fixture(params=SIGHTS, ids=lambda sight: repr(sight[0]))
def sight(request: pytest.FixtureRequest, place: Path) -> Iterator[tuple[Asker, Any]]:
    """Somebody who asks, and what they may see. What that records is checked afterwards: only for
    the one who asks."""
    asker, seen = request.param
    asker.sit(place)
    yield asker, seen
    shown = revealed(place)
    limited = asker in LIMITED or asker == ASSISTED
    assert shown == ({("bob", "t1")} if limited else set())


def left_out(done: Done, asker: Asker, count: int) -> None:
    """What is left out is told in the document, for whom and why."""
    told = done.json.get("sight")
    if asker in (NOBODY, LEAD):
        assert told is None
        return
    name = "dave" if asker == STRANGER else "bob"
    assert told["annotator"] == name
    assert (told["left_out"], told["reason"]) == (count, "hidden_until_finished")
    assert told["blind"] is (asker != ASSISTED)


@pytest.mark.parametrize("sight", [*SIGHTS, *NAMED_SIGHTS], indirect=True)
def test_export_of_all_labels(cli: Cli, tmp_path: Path, sight: tuple[Asker, Any]) -> None:
    asker, seen = sight
    options = ("export", "--format", "csv-long", "--labels", "all", "-o", "x.csv", *asker.args)
    done = cli(*options, "--json")
    assert done.code == 0, done.err
    with (tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
        assert {(row["annotator"], row["trace_id"]) for row in csv.DictReader(file)} == seen
    traces = {trace for _, trace in EVERYTHING}
    left_out(done, asker, len(traces - {trace for _, trace in seen}))


def test_export_of_one_other(cli: Cli, tmp_path: Path, sight: tuple[Asker, Any]) -> None:
    asker, seen = sight
    options = ("export", "--format", "csv-wide", "--labels", "tomas", "-o", "x.csv", *asker.args)
    done = cli(*options)
    assert done.code == 0
    with (tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["trace_id"] for row in rows} == people(seen)
    # Once it is recorded that a trace was shown, its outcome is hidden no more.
    assert {row["outcome"] for row in rows} <= {"failed"}
    count = 3 - len(rows)
    assert ("left out" in done.err) is (count > 0)


def test_export_of_gold(cli: Cli, tmp_path: Path, sight: tuple[Asker, Any]) -> None:
    asker, seen = sight
    done = cli("export", "--format", "gold", "-o", "gold.json", *asker.args, "--json")
    if not people(seen):
        assert (done.code, "3 traces are left out" in done.err) == (1, True)
        assert not (tmp_path / "gold.json").exists()
        return
    assert done.code == 0
    gold = json.loads((tmp_path / "gold.json").read_text("utf-8"))
    assert {trace["trace_id"] for trace in gold["traces"]} == people(seen)
    assert gold["agreement"]["traces"]["finished_by_two"] == len(people(seen))
    judged = gold["judges"][JUDGE]["traces"]
    # On t1 and t2 people differ, so there is no gold that a judge could be held against.
    assert judged["compared"] == ("t3" in people(seen))
    assert judged["unlabelled"] == ((JUDGE, "t4") in seen)
    left_out(done, asker, 3 - len(people(seen)))
    sheet = (tmp_path / "gold.datasheet.md").read_text("utf-8")
    assert ("may not look into yet" in sheet) is (len(people(seen)) < 3)


def test_agree(cli: Cli, sight: tuple[Asker, Any]) -> None:
    asker, seen = sight
    done = cli("agree", "--rounds", 0, "--no-spans", *asker.args, "--json")
    assert done.code == 0
    assert done.json["traces"]["finished_by_two"] == len(people(seen))
    left_out(done, asker, 3 - len(people(seen)))


def test_the_traces_behind_a_figure(cli: Cli, sight: tuple[Asker, Any]) -> None:
    asker, seen = sight
    done = cli("agree", "--traces", "1.1", *asker.args, "--json")
    assert {one["trace"] for one in done.json["traces"]} == people(seen)
    left_out(done, asker, 3 - len(people(seen)))


@pytest.mark.parametrize("labels", ["gold", "tomas"])
def test_report(cli: Cli, sight: tuple[Asker, Any], labels: str) -> None:
    asker, seen = sight
    options = ("report", "--labels", labels, "--by", "all", "--rounds", 0)
    done = cli(*options, *asker.args, "--json")
    assert done.code == 0, done.err
    group = done.json["groups"].get("all", {"traces": 0, "failed": 0})
    assert (group["traces"], group["failed"]) == (len(people(seen)),) * 2
    left_out(done, asker, 3 - len(people(seen)))


def test_status(cli: Cli, sight: tuple[Asker, Any]) -> None:
    asker, seen = sight
    done = cli("status", *asker.args, "--json")
    if asker == STRANGER:
        assert (done.code, "no annotator 'dave'" in done.err) == (1, True)
        return
    # Bob differs from both others on t1, these differ on t2.
    assert done.json["conflicts"]["left"] == len(people(seen) - {"t3"})
    left_out(done, asker, 3 - len(people(seen)))


@pytest.mark.parametrize(
    ("asker", "traces", "failed"),
    [(NOBODY, 4, 3), (LEAD, 4, 3), (ASSISTED, 4, 3), (BLIND, 0, 0), (STRANGER, 0, 0)],
)
def test_a_report_on_a_judge_keeps_to_what_is_suggested_to_one(
    cli: Cli, place: Path, asker: Asker, traces: int, failed: int
) -> None:
    asker.sit(place)
    done = cli("report", "--labels", JUDGE, "--by", "all", "--rounds", 0, *asker.args, "--json")
    group = done.json["groups"].get("all", {"traces": 0, "failed": 0})
    assert (group["traces"], group["failed"]) == (traces, failed)


def test_ones_own_labels_are_ones_own_and_their_outcomes_stay_hidden(
    cli: Cli, place: Path, tmp_path: Path
) -> None:
    BLIND.sit(place)
    done = cli("export", "--format", "csv-wide", "--labels", "bob", "-o", "x.csv", "--json")
    assert done.json["traces"] == 1
    with (tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
        assert [(row["trace_id"], row["outcome"]) for row in csv.DictReader(file)] == [("t1", "")]
    report = cli("report", "--labels", "bob", "--by", "all", "--rounds", 0, "--json").json
    assert report["groups"]["all"]["unknown"] == 1
    assert report["sight"]["outcomes_hidden"] == 1
    assert revealed(place) == set()


def test_nothing_is_shown_or_recorded_under_another_s_name(cli: Cli, place: Path) -> None:
    BLIND.sit(place)
    for arguments in (
        ("agree", "--rounds", "0", "--no-spans"),
        ("status",),
        ("report", "--rounds", "0"),
        ("export", "--format", "gold", "-o", "g.json"),
    ):
        done = cli(*arguments, "--annotator", "tomas")
        assert done.code == 0
        assert "You are signed in as bob" in done.err
        assert "--annotator tomas does not change that" in done.err
        assert "2 traces are left out" in done.err
    refused = cli("study", "queue", "--annotator", "tomas", "--kind", "disagreements")
    assert (refused.code, refused.out) == (1, "")
    assert "you are signed in as bob" in refused.err
    assert {name for name, _ in revealed(place)} == {"bob"}


def test_leaving_blind_is_recorded_and_blind_for_once_is_not(cli: Cli, place: Path) -> None:
    def remembered() -> bool | None:
        workspace = Workspace.open(place)
        (info,) = (annotator for annotator in workspace.annotators() if annotator.name == "bob")
        workspace.close()
        return info.blind

    options = ("report", "--labels", JUDGE, "--by", "all", "--rounds", 0, "--json")
    ASSISTED.sit(place)
    assert cli(*options, "--annotator", "bob", "--blind").json["groups"] == {}
    assert remembered() is None
    BLIND.sit(place)
    assert cli(*options, "--assisted").json["groups"]["all"]["traces"] == 4
    assert remembered() is False


def test_a_study_says_who_works_blind(cli: Cli, place: Path) -> None:
    workspace = Workspace.open(place)
    study = Study(MAST.ref, ("bob", "mira"), batches=(("t1", "t2", "t3"),), blind=True)
    workspace.append([NewEvent("carol", None, MAST.ref, None, StudySet(None, study))])
    remember_person(workspace, "bob")
    workspace.close()
    assert cli("report", "--labels", JUDGE, "--rounds", 0, "--json").json["groups"] == {}
    shown = cli("study", "show", "--json").json["progress"]
    assert [row["name"] for row in shown] == ["bob"]


def set_study_of_others(place: Path, **conditions: object) -> None:
    """Set up a study of mira and tomas, with carol as its adjudicator."""
    study = Study(MAST.ref, ("mira", "tomas"), ("carol",), (("t1", "t2", "t3"),), **conditions)  # type: ignore[arg-type]
    with closing(Workspace.open(place)) as workspace:
        workspace.append([NewEvent("carol", None, MAST.ref, None, StudySet(None, study))])


def info_of(place: Path, name: str) -> AnnotatorInfo | None:
    with closing(Workspace.open(place)) as workspace:
        return next((one for one in workspace.annotators() if one.name == name), None)


@pytest.mark.parametrize(
    ("name", "finished"),
    [("dave", 0), ("bob", 1)],
    ids=["unknown", "labels-outside-the-study"],
)
def test_who_is_not_in_a_blind_study_is_told_no_suggestion(
    cli: Cli, place: Path, tmp_path: Path, name: str, finished: int
) -> None:
    write_run(tmp_path)

    def judged_traces(*words: str) -> int:
        arguments = ("report", "--labels", JUDGE, "--by", "all", "--rounds", 0, "--json")
        groups = cli(*arguments, *words).json["groups"]
        return sum(group["traces"] for group in groups.values())

    assert judged_traces("--annotator", name) == 4
    set_study_of_others(place, blind=True)
    assert judged_traces("--annotator", name) == finished
    document = cli("judge", "run.json", "--judge", "rules", "--json", "--annotator", name).json
    assert document["suggestions"] is None
    file = cli("inspect", "run.json", "--json", "--annotator", name).json["files"][0]
    assert [trace["outcome"] for trace in file["traces"]] == [None]
    # Adjudicators of the study and pipelines without a name are told as before.
    assert judged_traces("--annotator", "carol") == judged_traces() == 4
    assert info_of(place, "dave") is None  # asking registers nobody
    # Leaving blind is recorded, of a new name too.
    assert judged_traces("--annotator", name, "--assisted") == 4
    info = info_of(place, name)
    assert info is not None
    assert info.blind is False


def test_who_is_not_in_the_study_is_told_no_suggestion_that_it_withholds(
    cli: Cli, place: Path
) -> None:
    arguments = ("report", "--labels", JUDGE, "--by", "all", "--rounds", 0, "--json")
    set_study_of_others(place, blind=False, withheld=1.0)
    held = cli(*arguments, "--annotator", "dave").json["groups"]
    assert {one["traces"] for one in held.values()} <= {1}  # t4 is not in the study


def test_who_has_only_adjudicated_sees_everything(cli: Cli, place: Path) -> None:
    workspace = Workspace.open(place)
    facts = (PassStarted(PassKind.ADJUDICATION), PassFinished())
    workspace.append([NewEvent("carol", "t2", MAST.ref, 1, fact) for fact in facts])
    remember_person(workspace, "carol")
    workspace.close()
    done = cli("export", "--format", "gold", "-o", "gold.json", "--json")
    assert done.json["traces"] == 3
    assert "sight" not in done.json


def test_jsonl_is_the_whole_workspace_whoever_asks(cli: Cli, place: Path) -> None:
    BLIND.sit(place)
    done = cli("export", "--format", "jsonl", "-o", "all.jsonl", "--json")
    assert (done.code, done.json["traces"]) == (0, 3)
    assert revealed(place) == set()


@pytest.mark.parametrize(
    ("words", "option", "why"),
    [
        (("export", "--format", "jsonl", "-o", "x"), "--blind", "the whole workspace"),
        (("export", "--format", "jsonl", "-o", "x"), "--assisted", "the whole workspace"),
        (("import", "x.csv", "--format", "csv-long"), "--blind", "imports labels"),
        (
            ("import", "x.csv", "--format", "csv-long"),
            "--assisted",
            "imports labels",
        ),
        (("study", "add"), "--blind", "who works blind"),
        (("study", "show"), "--assisted", "who works blind"),
        (("study", "queue", "--annotator", "bob"), "--blind", "who works blind"),
        (("inspect", "x.json"), "--taxonomy=own.toml", "looks at traces"),
        (("convert", "x.json", "-o", "y"), "--taxonomy=own.toml", "looks at traces"),
        (("agree",), "--blind", "--annotator NAME"),
        (("report",), "--blind", "--annotator NAME"),
        (("status",), "--blind", "--annotator NAME"),
        (("export", "--format", "gold", "-o", "g"), "--blind", "--annotator NAME"),
    ],
)
def test_what_an_option_cannot_mean_is_said(
    cli: Cli, place: Path, tmp_path: Path, words: tuple[str, ...], option: str, why: str
) -> None:
    done = cli(*words, option)
    assert (done.code, done.out) == (2, "")
    assert option.partition("=")[0] in done.err
    assert why in done.err
    assert not (tmp_path / "g").exists()


def write_run(folder: Path) -> None:
    """A τ-bench run that failed, with its reward, in which the same call is made three times."""
    traj: list[dict[str, object]] = [{"role": "user", "content": "Cancel my order."}]
    for number in range(3):
        call = {"name": "look", "arguments": json.dumps({"order": "7"})}
        traj += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"c{number}", "name": "look", "content": "no"},
        ]
    row = {"task_id": 3, "reward": 0.0, "info": {"task": {"user_id": "u"}}, "traj": traj}
    (folder / "run.json").write_text(json.dumps([row]), "utf-8")


@pytest.mark.parametrize(
    ("asker", "hidden"),
    [
        (NOBODY, False),
        (LEAD, False),
        (ASSISTED, False),
        (Asker("bob", "bob", ("--assisted",)), False),
        (BLIND, True),
        (BLIND_NAMED, True),
        (BLIND_AS_TOMAS, True),
        (Asker(None, None, ("--blind",)), True),
    ],
)
def test_inspect_convert_and_judge(
    cli: Cli, place: Path, tmp_path: Path, asker: Asker, hidden: bool
) -> None:
    asker.sit(place)
    write_run(tmp_path)
    done = cli("judge", "run.json", "--judge", "rules", *asker.args)
    told = re.search(r"\d+ suggestions?\b", done.err + done.out)
    assert (told is None) is hidden
    assert ("Step repetition" in done.out) is not hidden
    judged = cli("judge", "run.json", "--judge", "rules", "--again", *asker.args, "--json").json
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
    (trace,) = cli("inspect", "run.json", *asker.args, "--json").json["files"][0]["traces"]
    assert trace["outcome"] == (None if hidden else "failed")


def test_inspect_hides_where_nobody_can_tell_who_works_blind(cli: Cli, tmp_path: Path) -> None:
    write_run(tmp_path)
    (tmp_path / ".mast-tui").mkdir()
    find_workspace(None).write_text("no workspace")
    done = cli("inspect", "run.json", "--json")
    assert done.code == 0
    assert done.json["files"][0]["traces"][0]["outcome"] is None
    assert "it is unknown who works blind" in done.err
    assert cli("inspect", "run.json", "--workspace", "nowhere.db").code == 1


@pytest.mark.parametrize("name", ["gold", "ALL", "ｇｏｌｄ", "Judge:x", "mi\u3164ra"])
def test_names_that_mean_something_else_are_refused_everywhere(
    cli: Cli, place: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "long.csv").write_text(
        f"trace_id,annotator,mode,value\nt1,{name},1.1,present\n", "utf-8"
    )
    (tmp_path / "wide.csv").write_text(f"trace_id,annotator,1.1\nt1,{name},1\n", "utf-8")
    mine = {"trace_id": "t1", "annotator": name, "mast_annotation": {"1.1": 1}}
    (tmp_path / "data.json").write_text(json.dumps([mine]), "utf-8")
    for arguments in (
        ("import", "long.csv", "--format", "csv-long"),
        ("import", "wide.csv", "--format", "csv-wide"),
        ("import", "data.json", "--format", "mast-data"),
        ("agree", "--annotator", name),
        ("export", "--format", "gold", "-o", "g.json", "--annotator", name),
        ("judge", "wide.csv", "--judge", "rules", "--annotator", name),
        ("study", "set", "--annotators", "mira,tomas", "--annotator", name),
    ):
        done = cli(*arguments)
        assert done.code in (1, 2), arguments
        assert "name" in done.err
    workspace = Workspace.open(place)
    known = {info.name for info in workspace.annotators()}
    workspace.close()
    assert known == {"mira", "tomas", "bob", "carol", JUDGE}


@pytest.mark.parametrize("name", ["mirа", "Mira", "ｍｉｒａ", "tornas", "b0b", "gоld"])
def test_a_new_name_that_looks_like_a_known_one_is_refused(
    cli: Cli, place: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "long.csv").write_text(
        f"trace_id,annotator,mode,value\nt9,{name},1.1,present\n", "utf-8"
    )
    done = cli("import", "long.csv", "--format", "csv-long", "--allow-new")
    assert (done.code, done.out) == (1, "")
    assert "looks like" in done.err
    like = {"tornas": "tomas", "b0b": "bob", "gоld": "gold"}.get(name, "mira")
    assert repr(like) in done.err
    set_up = cli("study", "set", "--annotators", f"{name},ann", "--annotator", "carol")
    assert (set_up.code, "looks like" in set_up.err) == (1, True)


def test_names_that_are_here_already_stay_and_travel_together(cli: Cli, tmp_path: Path) -> None:
    old = Workspace.open(tmp_path / "old.db")
    old.add_annotators([("mira", AnnotatorKind.HUMAN), ("Mira", AnnotatorKind.HUMAN)])
    old.close()
    assert cli("export", "--workspace", "old.db", "--format", "jsonl", "-o", "old.jsonl").code == 0
    done = cli("import", "--workspace", "new.db", "old.jsonl", "--format", "jsonl")
    assert done.code == 0, done.err
    second_run = cli("import", "--workspace", "old.db", "old.jsonl", "--format", "jsonl")
    assert second_run.code == 0, second_run.err
