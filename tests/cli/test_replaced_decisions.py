"""Imports that replace decisions, guidelines, studies or judgements need ``--replace``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.jsonl import merge_content, read_jsonl, workspace_lines
from mast_tui.gold import Decision, Guideline
from mast_tui.gold.overlaps import item_id
from mast_tui.labels import Finding, PassKind, Target, VerdictValue
from mast_tui.study import Study
from mast_tui.taxonomy.loader import from_dict, to_dict
from mast_tui.traces.library import samples_folder
from mast_tui.traces.model import Outcome
from mast_tui.workspace import NewEvent, PersonChanges, TraceRecord, Workspace
from mast_tui.workspace.events.types import (
    Decided,
    Fact,
    GuidelineSet,
    Judged,
    LabelAdded,
    LabelRemoved,
    PassFinished,
    PassStarted,
    PassUnfinished,
    PassWithdrawn,
    StudySet,
)
from mast_tui.workspace.judgements import store_judgement
from mast_tui.workspace.records import MergeRefused
from tests.cli.conftest import Cli, open_workspace
from tests.exchange.strategies import MAST, SLUGS

SAMPLES: Final = samples_folder() / "workspace.jsonl"
HEAD: Final = {"record": "workspace", "format": "mast-tui-workspace", "version": 5}
MODE: Final = SLUGS[0]
JUDGE: Final = "judge:rules@9"
EARLY, NOON, LATE = (f"2026-05-04T{hour:02}:00:00Z" for hour in (9, 12, 15))

Line = dict[str, Any]


def on_mode(
    author: str, time: str, value: str = "absent", target: Target | None = None, item: str = MODE
) -> Decision:
    targets = () if target is None else (target,)
    return Decision(MODE, item, VerdictValue(value), targets, (), (), author, time)


def on_span(author: str, time: str, key: str, value: str = "present") -> Decision:
    """Make a decision on one span of the mode."""
    target = Target(key, key)
    return on_mode(author, time, value, target, item_id(MODE, target))


def decide(workspace: Workspace, *decisions: Decision, trace: str = "t1") -> None:
    for decision in decisions:
        fact = Decided(decision.item, None, decision)
        workspace.append([NewEvent(decision.decided_by, trace, MAST.ref, 1, fact)])


def export(workspace: Workspace, path: Path) -> Path:
    path.write_text("".join(workspace_lines(workspace)), encoding="utf-8")
    return path


def write_file(tmp_path: Path, *decisions: Decision) -> Path:
    """Write the export of another machine with these decisions."""
    with closing(Workspace.open(":memory:")) as other:
        other.add_taxonomy(MAST)
        decide(other, *decisions)
        return export(other, tmp_path / "other.jsonl")


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with closing(Workspace.open(":memory:")) as workspace:
        workspace.add_taxonomy(MAST)
        yield workspace


def refusal(workspace: Workspace, path: Path, **options: Any) -> PersonChanges:
    """Return the changes for which a file is refused, and check that nothing is written."""
    previous = "".join(workspace_lines(workspace))
    with pytest.raises(MergeRefused) as error:
        merge_content(read_jsonl(path), workspace, **options)
    assert "".join(workspace_lines(workspace)) == previous
    (changes,) = error.value.people
    return changes


def import_file(workspace: Workspace, path: Path, *names: str) -> tuple[PersonChanges, ...]:
    return merge_content(read_jsonl(path), workspace, replacing=names).people


def test_import_refuses_decisions_of_a_new_name_over_the_adjudicators(
    cli: Cli, tmp_path: Path
) -> None:
    cli.ok("import", SAMPLES, "--format", "jsonl")
    previous = cli.gold()["traces"]
    lines = [json.loads(line) for line in SAMPLES.read_text("utf-8").splitlines()]
    forged: list[Line] = [HEAD, {"record": "annotator", "name": "zoe", "kind": "human"}]
    for line in lines:
        if line.get("kind") == "decided":
            payload = line["payload"]
            decision = {**payload["after"], "value": "absent", "targets": [], "decided_by": "zoe"}
            line["payload"] = {**payload, "before": payload["after"], "after": decision}
            line.pop("chain")
            number = len(forged)
            forged.append(line | {"id": f"zoe-{number}", "annotator": "zoe", "seq": number})
    file = tmp_path / "f.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in forged))
    arguments = ("import", file, "--format", "jsonl")
    message = "zoe: 42 decisions made, 42 decisions of mira replaced. Nothing was written"
    result = cli.refused(*arguments, says=message)
    assert result.err.rstrip().endswith("--replace mira")
    (zoe,) = cli.refused(*arguments, "--json").json["people"]
    assert zoe["overruled"] == {"mira": {"decisions": 42}}
    assert (zoe["needs"], zoe["decisions_overruled"]) == (["mira"], 42)
    assert cli.gold()["traces"] == previous
    # The option names the annotator whose decisions are replaced.
    cli.refused(*arguments, "--replace", "zoe")
    cli.ok(*arguments, "--replace", "mira")
    cli.ok(*arguments)


@pytest.mark.parametrize(
    ("stored", "imported"),
    [
        pytest.param(on_mode("mira", NOON), on_mode("zoe", LATE), id="later"),
        pytest.param(on_mode("mira", NOON), on_mode("zoe", NOON), id="at the same time"),
        pytest.param(on_mode("mira", NOON), on_mode("zoe", "zzz"), id="at no time"),
        pytest.param(on_span("mira", NOON, "k1"), on_mode("zoe", LATE), id="verdict over span"),
        pytest.param(on_span("mira", NOON, "k1"), on_mode("zoe", EARLY), id="earlier verdict"),
        pytest.param(
            on_mode("mira", NOON, "present", Target("k1", "k3")),
            on_span("zoe", LATE, "k2", "absent"),
            id="span over that of a verdict",
        ),
        pytest.param(
            on_span("mira", NOON, "k1"), on_span("zoe", LATE, "k1", "absent"), id="same span"
        ),
    ],
)
def test_replacing_a_decision_needs_the_name_of_its_author(
    workspace: Workspace, tmp_path: Path, stored: Decision, imported: Decision
) -> None:
    decide(workspace, stored)
    file = write_file(tmp_path, imported)
    changes = refusal(workspace, file)
    assert (changes.annotator, changes.needs) == ("zoe", ("mira",))
    assert changes.overruled == {"mira": {"decisions": 1}}
    assert refusal(workspace, file, replacing=["zoe"]).needs == ("mira",)
    (accepted,) = import_file(workspace, file, "mira")
    assert (accepted.refused, accepted.replaced) == (False, True)
    assert import_file(workspace, file) == ()


@pytest.mark.parametrize(
    ("stored", "imported"),
    [
        pytest.param(None, on_mode("zoe", LATE), id="no decision"),
        pytest.param(on_mode("mira", NOON), on_mode("zoe", EARLY), id="earlier"),
        pytest.param(on_mode("zoe", NOON), on_mode("mira", NOON), id="first by name"),
        pytest.param(on_span("mira", NOON, "k1"), on_span("zoe", LATE, "k9"), id="another span"),
        pytest.param(
            on_mode("mira", NOON, "present", Target("k1", "k1")),
            on_span("zoe", EARLY, "k1", "absent"),
            id="an earlier span",
        ),
        pytest.param(on_mode("mira", NOON), on_span("zoe", LATE, "k1"), id="span of absent mode"),
    ],
)
def test_decisions_that_replace_nothing_are_imported(
    workspace: Workspace, tmp_path: Path, stored: Decision | None, imported: Decision
) -> None:
    decide(workspace, *([stored] if stored else []))
    previous = workspace.decisions("t1", MAST.ref)
    import_file(workspace, write_file(tmp_path, imported))
    assert set(previous) <= set(workspace.decisions("t1", MAST.ref))


def test_an_adjudicator_may_add_decisions_on_another_machine_and_not_replace_any(
    workspace: Workspace, tmp_path: Path
) -> None:
    decide(workspace, on_mode("mira", NOON, "present", Target("k1", "k1")))
    decide(workspace, on_mode("zoe", EARLY), trace="t2")
    with closing(Workspace.open(":memory:")) as other:
        import_file(other, export(workspace, tmp_path / "here.jsonl"))
        decide(other, on_span("mira", LATE, "k9"))
        (changes,) = import_file(workspace, export(other, tmp_path / "other.jsonl"))
        assert (changes.decisions_added, changes.needs) == (1, ())
        decide(other, on_span("mira", LATE, "k1", "absent"))
        assert refusal(workspace, export(other, tmp_path / "other.jsonl")).needs == ("mira",)
    with closing(Workspace.open(":memory:")) as other:
        import_file(other, export(workspace, tmp_path / "here.jsonl"))
        fact = Decided(MODE, on_mode("zoe", EARLY), None)
        other.append([NewEvent("zoe", "t2", MAST.ref, 1, fact)])
        assert refusal(workspace, export(other, tmp_path / "other.jsonl")).needs == ("zoe",)


def test_decisions_of_two_adjudicators_are_imported_into_a_new_workspace(
    workspace: Workspace, tmp_path: Path, cli: Cli
) -> None:
    decide(workspace, on_mode("mira", NOON))
    decide(workspace, on_mode("zoe", LATE), on_span("zoe", LATE, "k1"))
    # Zoe's history does not continue one that is known, so it is written at once.
    lines = export(workspace, tmp_path / "both.jsonl").read_text().splitlines()
    lines = [line for line in lines if '"zoe"' not in line or '"seq": 1,' not in line]
    (tmp_path / "both.jsonl").write_text("\n".join(lines))
    cli.ok("import", "both.jsonl", "--format", "jsonl", "--replace", "zoe")


def test_a_decision_under_another_name_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    text = write_file(tmp_path, on_mode("zoe", LATE)).read_text()
    file = tmp_path / "x.jsonl"
    file.write_text(text.replace('"decided_by": "zoe"', '"decided_by": "mira"'))
    with pytest.raises(ExchangeError, match=r"line .*an event by 'zoe' is recorded under 'mira'"):
        read_jsonl(file)


@pytest.mark.parametrize("kind", ["guidelines", "studies"])
def test_replacing_a_guideline_or_a_study_needs_the_name_of_its_author(
    workspace: Workspace, tmp_path: Path, kind: str
) -> None:
    study = Study(MAST.ref, ("ada", "ben"), per_trace=1)
    guideline = Guideline("g", MODE, "only with a reason", "mira", NOON)
    changed = replace(guideline, text="", written_by="zoe", written_at=LATE)
    facts: dict[str, tuple[Fact, Fact]] = {
        "guidelines": (GuidelineSet("g", None, guideline), GuidelineSet("g", guideline, changed)),
        "studies": (StudySet(None, study), StudySet(None, replace(study, annotators=("zoe",)))),
    }
    ours, theirs = facts[kind]
    workspace.append([NewEvent("mira", None, MAST.ref, None, ours)])
    with closing(Workspace.open(":memory:")) as other:
        other.append([NewEvent("zoe", None, MAST.ref, None, theirs)])
        file = export(other, tmp_path / "other.jsonl")
    assert refusal(workspace, file).overruled == {"mira": {kind: 1}}
    import_file(workspace, file, "mira")


def finding(mode: str, key: str = "k1", confidence: float = 0.7) -> Finding:
    return Finding(mode, key, key, "why", confidence)


def add_judgement(workspace: Workspace, trace: str, *findings: Finding, **options: Any) -> None:
    """Register a trace, and store a judgement of the judge on it."""
    workspace.register_trace(TraceRecord(trace))
    store_judgement(
        workspace,
        judge=JUDGE,
        taxonomy=MAST.ref,
        trace_id=trace,
        looks_at=SLUGS[:4],
        findings=findings,
        **options,
    )


@pytest.fixture
def judged_copy(workspace: Workspace, tmp_path: Path) -> Iterator[Workspace]:
    """A workspace of another machine with the same judgement of one trace."""
    add_judgement(workspace, "t1", finding(SLUGS[0]), finding(SLUGS[1], "k2"), unsure=[SLUGS[2]])
    with closing(Workspace.open(":memory:")) as other:
        import_file(other, export(workspace, tmp_path / "here.jsonl"))
        yield other


def change_judgement(workspace: Workspace, kind: str) -> None:
    """Change what the judge has stored on the trace, in one of several ways."""
    (label,) = workspace.labels(annotator=JUDGE)[:1]
    if kind == "another judgement":
        add_judgement(workspace, "t1", finding(SLUGS[0], confidence=0.6))
        return
    facts: dict[str, Fact] = {
        "removed": LabelRemoved(label),
        "changed": LabelAdded(replace(label, note="other")),
        "absent mode present": LabelAdded(replace(label, id="new", mode=SLUGS[3])),
        "absent mode unsure": Judged(tuple(SLUGS[:4]), (), None, (SLUGS[2], SLUGS[3])),
        "withdrawn": PassWithdrawn(PassKind.BLIND),
        "reopened": PassUnfinished(PassFinished()),
    }
    workspace.append([NewEvent(JUDGE, "t1", MAST.ref, 1, facts[kind])])


@pytest.mark.parametrize(
    "kind",
    [
        "removed",
        "changed",
        "absent mode present",
        "another judgement",
        "absent mode unsure",
        "withdrawn",
        "reopened",
    ],
)
def test_replacing_a_judgement_needs_the_name_of_the_judge(
    workspace: Workspace, judged_copy: Workspace, tmp_path: Path, kind: str
) -> None:
    change_judgement(judged_copy, kind)
    file = export(judged_copy, tmp_path / "other.jsonl")
    ids = {event.id for event in workspace.events()}
    lines = file.read_text().splitlines()
    new_file = tmp_path / "new.jsonl"  # without the events of this workspace
    new_file.write_text("\n".join(line for line in lines if json.loads(line).get("id") not in ids))
    for exported in (file, new_file):
        assert refusal(workspace, exported).needs == (JUDGE,)
    (accepted,) = import_file(workspace, new_file, JUDGE)
    assert accepted.replaced
    assert import_file(workspace, new_file) == import_file(workspace, file) == ()


def test_judgements_of_the_same_judge_on_another_machine_are_imported(
    workspace: Workspace, judged_copy: Workspace, tmp_path: Path
) -> None:
    add_judgement(judged_copy, "t2", finding(SLUGS[0]))
    add_judgement(judged_copy, "t3", finding(SLUGS[1]), finding(SLUGS[1], "k9"), partial=True)
    import_file(workspace, export(judged_copy, tmp_path / "other.jsonl"))
    add_judgement(judged_copy, "t3", finding(SLUGS[1], "k9"))
    (changes,) = import_file(workspace, export(judged_copy, tmp_path / "other.jsonl"))
    assert (changes.labels_removed, changes.needs) == (1, ())
    with closing(Workspace.open(":memory:")) as other:  # which has judged the trace itself
        add_judgement(other, "t1", finding(SLUGS[0]), finding(SLUGS[1], "k2"), unsure=[SLUGS[2]])
        (changes,) = import_file(workspace, export(other, tmp_path / "other.jsonl"))
        assert changes.needs == ()


def test_changed_definitions_and_outcomes_are_reported(cli: Cli, tmp_path: Path) -> None:
    with closing(Workspace.open(tmp_path / "a.db")) as workspace:
        workspace.add_taxonomy(MAST)
        workspace.register_trace(TraceRecord("t1", outcome=Outcome.FAILED))
        workspace.register_trace(TraceRecord("t2"))
        export(workspace, tmp_path / "a.jsonl")
        text = json.dumps(to_dict(MAST)).replace(json.dumps(MAST.modes[0].definition), '"Other."')
        workspace.add_taxonomy(from_dict(json.loads(text), "other"))
        for name in ("t1", "t2"):
            workspace.register_trace(TraceRecord(name, outcome=Outcome.SUCCEEDED))
        export(workspace, tmp_path / "b.jsonl")
    assert cli.json("import", "a.jsonl", "--format", "jsonl")["notes"] == []
    notes = cli.json("import", "b.jsonl", "--format", "jsonl")["notes"]
    assert notes == [
        f"b.jsonl: the texts of {MAST.ref} are newer in the file and are used from now on; the "
        "earlier ones are kept",
        "b.jsonl: 1 trace has another outcome or score in the file, used from now on",
    ]
    assert cli.json("import", "b.jsonl", "--format", "jsonl")["notes"] == []


def test_rows_of_an_adjudicator_become_a_pass_beside_the_decisions(cli: Cli) -> None:
    with open_workspace() as workspace:
        workspace.register_trace(TraceRecord("t1"))
        start = PassStarted(PassKind.ADJUDICATION)
        workspace.append([NewEvent("mira", "t1", MAST.ref, 1, start)])
        decide(workspace, on_mode("mira", NOON))
    for _ in range(2):
        cli.label("t1,mira,1.1,present", "t1,mira,,finished")
    with open_workspace() as workspace:
        passes = [(p.number, p.kind, p.finished) for p in workspace.passes()]
        assert passes == [(1, PassKind.ADJUDICATION, False), (2, PassKind.BLIND, True)]
        assert [label.pass_number for label in workspace.labels(pass_number=None)] == [2]
        assert workspace.decisions("t1", MAST.ref) == (on_mode("mira", NOON),)


def test_three_machines_exchange_work_twice_without_replacing(tmp_path: Path) -> None:
    """Each machine labels or decides, exports, and imports what the lead has merged."""
    lead, ada, mira = (Workspace.open(":memory:") for _ in range(3))
    study = StudySet(None, Study(MAST.ref, ("ada",), per_trace=1))
    lead.append([NewEvent("lead", None, MAST.ref, None, study)])
    add_judgement(lead, "t1", finding(SLUGS[0]))
    for number in (1, 2):
        file = export(lead, tmp_path / "lead.jsonl")
        for workspace in (ada, mira):
            import_file(workspace, file)
        trace = f"t{number}"
        for fact in (PassStarted(PassKind.BLIND), PassFinished()):
            ada.append([NewEvent("ada", trace, MAST.ref, 1, fact)])
        decide(mira, on_mode("mira", NOON), trace=trace)
        guideline = Guideline(f"g{number}", MODE, "only with a reason", "mira", NOON)
        written = GuidelineSet(guideline.id, None, guideline)
        mira.append([NewEvent("mira", None, MAST.ref, None, written)])
        add_judgement(mira, f"judged-{number}", finding(SLUGS[0]))
        for name, workspace in (("ada", ada), ("mira", mira)):
            people = import_file(lead, export(workspace, tmp_path / f"{name}.jsonl"))
            assert {person.annotator for person in people} <= {name, JUDGE}
            assert import_file(lead, tmp_path / f"{name}.jsonl") == ()
    for workspace in (lead, ada, mira):
        workspace.close()
