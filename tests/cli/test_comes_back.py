"""An export that comes back to the workspace that it was made of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.labels import AnnotatorKind, Label, PassKind, Target, VerdictValue
from mast_tui.taxonomy.loader import load_mast
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import Fact, LabelAdded, PassFinished, PassStarted, VerdictSet
from tests.cli.conftest import Cli

MAST = load_mast()
CALLS = [{"role": "assistant", "content": f"Let me look again. {n % 2}"} for n in range(8)]


@pytest.mark.parametrize("finished", [False, True])
def test_what_was_labelled_here_is_not_doubled(cli: Cli, tmp_path: Path, finished: bool) -> None:
    (tmp_path / "run.json").write_text(json.dumps(CALLS), encoding="utf-8")
    assert cli("judge", "run.json", "--judge", "rules").code == 0
    store = Workspace.open(Path(cli("status", "--json").json["workspace"]))
    (trace,) = store.traces()
    store.add_annotator("alice", AnnotatorKind.HUMAN)
    facts: list[Fact] = [PassStarted(PassKind.BLIND)]
    for name, target in (("one", Target("/0", "/3")), ("two", Target())):
        label = Label(
            name, "alice", trace.trace_id, MAST.ref, MAST.modes[2].slug, target, note="🚀"
        )
        facts.append(LabelAdded(label))
    facts.append(VerdictSet(MAST.modes[0].slug, None, VerdictValue.UNSURE))
    facts += [PassFinished()] if finished else []
    store.append([NewEvent("alice", trace.trace_id, MAST.ref, 1, fact) for fact in facts])
    store.close()
    assert cli("export", "--format", "csv-long", "--labels", "all", "-o", "all.csv").code == 0
    done = cli("import", "all.csv", "--format", "csv-long", "--json")
    assert (done.code, done.json["events"]["new"], done.json["notes"]) == (0, 0, []), done.err
    cli("export", "--format", "csv-long", "--labels", "all", "-o", "again.csv")
    assert (tmp_path / "again.csv").read_text("utf-8") == (tmp_path / "all.csv").read_text("utf-8")


def test_a_study_that_two_copies_set_up_differently_is_told(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(CALLS), encoding="utf-8")
    for name, seed in (("a.db", "1"), ("b.db", "2")):
        assert cli("judge", "run.json", "--judge", "rules", "--workspace", name).code == 0
        people = ("--annotators", "alice,bob", "--annotator", name[0], "--seed", seed)
        assert cli("study", "set", *people, "--workspace", name).code == 0
        assert (
            cli("export", "--format", "jsonl", "-o", f"{name}.jsonl", "--workspace", name).code == 0
        )

    def told(source: str, into: str, *options: str) -> list[str]:
        arguments = ("--format", "jsonl", "--workspace", into, "--json")
        done = cli("import", source, *arguments, *options)
        assert done.code == 0
        return [note for note in done.json["notes"] if "study" in note]

    assert told("a.db.jsonl", "fresh.db") == told("a.db.jsonl", "a.db") == []
    refused = cli("import", "b.db.jsonl", "--format", "jsonl", "--workspace", "a.db")
    assert refused.code == 1
    assert "1 study of a replaced. Nothing was written" in refused.err
    (later, replaced) = sorted(
        told("b.db.jsonl", "a.db", "--replace", "a", "--annotator", "a"),
        key=lambda note: "replaced as asked" in note,
    )
    assert "counts from now on" in later
    assert "1 study of a replaced" in replaced
    assert told("b.db.jsonl", "a.db") == []
    (earlier,) = told("a.db.jsonl", "b.db")
    assert "the one that is here stays" in earlier
    shown = [
        cli("study", "show", "--json", "--workspace", name).json["study"]
        for name in ("a.db", "b.db")
    ]
    assert shown[0] == shown[1]
