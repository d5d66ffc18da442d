"""``study notes``, ``taxonomy add`` and ``taxonomy agree``: from open codes to a mode, and κ of
each version."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.labels import Label, PassKind, Target, VerdictValue
from mast_tui.session import remember_person
from mast_tui.study import Study
from mast_tui.taxonomy.loader import load_mast, load_taxonomy
from mast_tui.taxonomy.model import OPEN_SLUG
from mast_tui.workspace import NewEvent, TraceRecord, Workspace, find_workspace
from mast_tui.workspace.events.types import (
    Fact,
    LabelAdded,
    PassFinished,
    PassStarted,
    SpanNoteSet,
    StudySet,
    VerdictSet,
)
from tests.cli.conftest import Cli
from tests.judges.llm.server import MODEL, ModelServer, answer
from tests.traces.checks import CORPUS, needs_corpus

MAST = load_mast()
CATEGORY = MAST.categories[0].id
ESCAPE = "asks twice \x1b[31mred"


def works(workspace: Workspace, who: str, trace_id: str, *facts: Fact, done: bool = True) -> None:
    finish = [PassFinished()] if done else []
    modes = [VerdictSet(mode.slug, None, VerdictValue.ABSENT) for mode in MAST.modes]
    all_facts: list[Fact] = [PassStarted(PassKind.BLIND), *modes, *facts, *finish]
    workspace.append([NewEvent(who, trace_id, MAST.ref, 1, fact) for fact in all_facts])


def open_label(who: str, trace_id: str, note: str) -> LabelAdded:
    name = f"{who}{trace_id}"
    label = Label(name, who, trace_id, MAST.ref, OPEN_SLUG, Target("k1", "k1"), note=note)
    return LabelAdded(label)


@pytest.fixture
def notes(cli: Cli) -> Path:
    """What alice and bob wrote down on three traces; bob has not finished the last."""
    database_path = find_workspace(None)
    with closing(Workspace.open(database_path)) as workspace:
        workspace.add_taxonomy(MAST)
        for trace_id in ("t1", "t2", "t3"):
            workspace.register_trace(TraceRecord(trace_id))
        works(workspace, "alice", "t1", open_label("alice", "t1", "asks twice"))
        works(workspace, "alice", "t2", SpanNoteSet("k2", "", "wrong customer #who"))
        works(workspace, "bob", "t1", open_label("bob", "t1", ESCAPE))
        works(workspace, "bob", "t2")
        works(workspace, "bob", "t3", open_label("bob", "t3", "asks twice"), done=False)
    return database_path


def test_what_was_written_down_is_listed_in_groups_with_saturation(cli: Cli, notes: Path) -> None:
    document = cli("study", "notes", "--json").json
    assert [(group["name"], len(group["places"])) for group in document["groups"]] == [
        ("asks twice", 3),
        ("#who", 1),
    ]
    assert document["groups"][0]["places"][0] == {
        "annotator": "alice",
        "trace_id": "t1",
        "kind": "label",
        "first": "k1",
        "last": "k1",
        "quote": None,
        "text": "asks twice",
        "tags": [],
        "given": [],
    }
    assert document["saturation"] == {
        "traces": 2,
        "kinds": 2,
        "since_last_new": 0,
        "new_in_last_10": 2,
        "looked_at": [
            {"trace_id": "t1", "kinds": 1, "new": ["asks twice"]},
            {"trace_id": "t2", "kinds": 1, "new": ["#who"]},
        ],
    }
    output = cli("study", "notes").out
    assert "saturation: 2 kinds of failure on 2 traces" in output
    one = cli("study", "notes", "--tag", "who").out
    assert "2 #who\n  t2 · alice · k2 · wrong customer #who\n" in one
    found = cli("study", "notes", "--search", "red").out
    assert "\x1b" not in found
    assert "␛[31mred" in found
    done = cli("study", "notes", "--group", "9")
    assert (done.code, "there is no group 9" in done.err) == (1, True)


def test_a_model_proposes_groups_that_are_kept_for_whoever_may_see_what_it_was_shown(
    cli: Cli, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    def names(*given: str) -> tuple[str, list[str]]:
        document = cli("study", "notes", "--json", *given).json
        return document["grouped_by"], [group["name"] for group in document["groups"]]

    assert "no model is set" in cli("study", "notes", "--by", "model").err
    found = {"groups": [{"name": "Repeats itself", "notes": [1, 2]}]}
    with ModelServer(lambda *_: answer(json.dumps(found))) as server:
        (tmp_path / "mast-tui").mkdir()
        file = tmp_path / "mast-tui" / "config.toml"
        file.write_text(f'[judge]\nmodel = "{MODEL}"\nbase_url = "{server.base_url}"\n')
        done = cli("study", "notes", "--by", "model")
        assert done.code == 0, done.err
        (asked,) = server.chats
    assert "The words of 2 notes are sent to" in done.err
    assert "1 request, 100 tokens in and 50 out" in done.err
    # A tag is somebody's own word for it: nobody asks a model.
    assert "wrong customer" not in json.dumps(asked.body)
    assert names() == (MODEL, ["Repeats itself", "#who"])
    assert names("--annotator", "alice") == ("words", ["asks twice", "#who"])
    assert names("--by", "words") == ("words", ["asks twice", "#who"])


def test_tags_are_given_afterwards_searched_and_written_out(cli: Cli, notes: Path) -> None:
    who = ("--annotator", "bob")
    done = cli("study", "notes", "--search", "customer", "--give", "#Mixup", *who, "--json")
    assert done.code == 0, done.err
    (group,) = done.json["groups"]
    assert (group["name"], group["places"][0]["tags"]) == ("#mixup", ["mixup", "who"])
    told = cli("study", "notes", "--tag", "mixup", *who).out
    assert "wrong customer #who #mixup" in told
    # Whoever may not see what bob says of the trace does not see his tag.
    cli("study", "notes", "--search", "asks", "--give", "again", *who)
    told = cli("study", "notes", "--json", "--annotator", "alice").json
    assert [group["name"] for group in told["groups"]] == ["#again", "#mixup"]
    told = cli("study", "notes", "--json", "--annotator", "carol").json
    assert told["groups"] == []
    # They go along to another workspace, once and for all.
    cli("export", "--format", "jsonl", "-o", "all.jsonl")
    for _ in range(2):
        cli("import", "--format", "jsonl", "all.jsonl", "--workspace", "copy.db")
    cli("export", "--format", "jsonl", "-o", "again.jsonl", "--workspace", "copy.db")
    assert Path("again.jsonl").read_bytes() == Path("all.jsonl").read_bytes()
    assert '"record": "tags"' in Path("all.jsonl").read_text()
    off = cli("study", "notes", "--tag", "mixup", "--give", "mixup", *who)
    assert "#mixup: removed from 1" in off.err
    assert cli("study", "notes", "--tag", "mixup", *who, "--json").json["groups"] == []
    assert "one word" in cli("study", "notes", "--give", "two words", *who).err


def test_nobody_sees_what_others_wrote_before_they_have_finished(cli: Cli, notes: Path) -> None:
    document = cli("study", "notes", "--json", "--annotator", "bob").json
    texts = {place["text"] for group in document["groups"] for place in group["places"]}
    assert texts == {"asks twice", ESCAPE, "wrong customer #who"}
    document = cli("study", "notes", "--json", "--annotator", "alice").json
    places = {place["trace_id"] for group in document["groups"] for place in group["places"]}
    assert places == {"t1", "t2"}
    document = cli("study", "notes", "--json", "--annotator", "carol").json
    assert (document["groups"], document["saturation"]["traces"]) == ([], 0)
    with closing(Workspace.open(notes)) as workspace:
        revealed = [
            labelling.trace_id
            for labelling in workspace.passes()
            if labelling.revealed_at is not None
        ]
    assert sorted(revealed) == ["t1", "t1", "t2"]


def test_an_empty_workspace_says_what_to_do(cli: Cli) -> None:
    with closing(Workspace.open(find_workspace(None))):
        pass
    assert "0 0 labels what is none of the modes" in cli("study", "notes").out


def test_a_mode_is_made_of_a_group_tried_made_and_taken_back(cli: Cli, notes: Path) -> None:
    arguments = ("taxonomy", "add", "Asks twice", "--category", CATEGORY, "--group", "1", "--json")
    tried = cli(*arguments, "--dry-run").json
    assert (tried["file"], Path("mast-3+1.toml").exists()) == (None, False)
    document = cli(*arguments, "--definition", "It asks what it was told.").json
    assert document["labels"] == tried["labels"] == {**document["labels"], "carried": 3}
    assert document["mode"] == {"slug": "asks_twice", "code": "1.6", "name": "Asks twice"}
    assert len(document["places"]) == 3
    assert load_taxonomy(Path(document["file"])).ref == "mast@3+1"
    second_document = cli("study", "notes", "--json", "--taxonomy", document["file"]).json
    assert [group["name"] for group in second_document["groups"]] == ["#who"]
    assert second_document["saturation"]["looked_at"][0]["new"] == ["asks_twice"]
    agreed = cli("agree", "--json", "--rounds", "0").json
    assert agreed["taxonomy"] == "mast@3+1"
    assert agreed["modes"]["1.6"]["raw_agreement"]["value"] == 1.0
    assert cli("taxonomy", "migrate", "--undo").code == 0
    assert len(cli("study", "notes", "--json").json["groups"]) == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--group", "1", "--category", "nowhere"), "has no category 'nowhere'"),
        (("--search", "nothing such", "--category", CATEGORY), "no open code is chosen"),
        (("--category", CATEGORY), "choose the open codes with --group"),
    ],
)
def test_what_cannot_be_made_is_refused_in_words(
    cli: Cli, notes: Path, words: tuple[str, ...], told: str
) -> None:
    done = cli("taxonomy", "add", "Asks twice", *words)
    assert done.code != 0
    assert told in done.err
    assert not list(Path().glob("*.toml"))


def test_under_a_study_its_lead_alone_makes_modes(cli: Cli, notes: Path) -> None:
    with closing(Workspace.open(notes)) as workspace:
        fact = StudySet(None, Study(MAST.ref, ("alice", "bob"), batches=(("t1", "t2"),)))
        workspace.append([NewEvent("olga", None, MAST.ref, None, fact)])
        remember_person(workspace, "alice")
    arguments = ("taxonomy", "add", "Asks twice", "--category", CATEGORY, "--group", "1")
    done = cli(*arguments)
    assert (done.code, "only olga" in done.err) == (1, True)


# κ of each version


def test_agreement_under_each_version_stands_beside_the_last_on_the_same_traces(
    cli: Cli, notes: Path
) -> None:
    arguments = ("taxonomy", "add", "Asks twice", "--category", CATEGORY, "--group", "1")
    assert cli(*arguments).code == 0
    document = cli("taxonomy", "agree", "--json", "--rounds", "0").json
    first, last = document["versions"]
    assert (first["taxonomy"], last["taxonomy"]) == ("mast@3", "mast@3+1")
    assert (first["modes"], last["modes"], last["same_traces"]) == (14, 15, None)
    assert first["same_traces"]["traces"] == first["traces"] == last["traces"] == 2
    # Nothing but absences before; with the new mode both say where it shows.
    assert first["same_traces"]["here"]["cohen_kappa"]["value"] is None
    assert first["same_traces"]["last"]["cohen_kappa"]["value"] == 1.0
    output = cli("taxonomy", "agree", "--rounds", "0").out
    assert "κ mast@3+1" in output
    done = cli("taxonomy", "agree", "mast@9", "mast@3")
    assert (done.code, "no taxonomy of that name" in done.err) == (1, True)


def test_without_a_migration_the_versions_are_named(cli: Cli, notes: Path) -> None:
    done = cli("taxonomy", "agree")
    assert (done.code, "name the taxonomies to compare" in done.err) == (1, True)


@needs_corpus
def test_masts_three_versions_stand_side_by_side_on_its_human_labels(cli: Cli) -> None:
    labels = CORPUS / "mast-human" / "annotations_rounds_1_2.json"
    assert cli("import", labels, "--format", "mast-human", "--allow-new").code == 0
    for name in ("early-mast-18", "interim-mast-17"):
        arguments = (
            "taxonomy",
            "migrate",
            f"{name}@1",
            "mast",
            "--map",
            f"{name}-to-mast",
            "--json",
        )
        done = cli(*arguments)
        assert (done.code, done.json["lost"], done.json["look_again"]) == (0, [], [])
    people = "annotator_1,annotator_2,annotator_3"
    document = cli("taxonomy", "agree", "--annotators", people, "--rounds", "0", "--json").json
    rows = {
        version["taxonomy"]: (version["modes"], version["traces"], version["cohen_kappa"]["value"])
        for version in document["versions"]
    }
    assert rows == {
        "early-mast-18@1": (18, 5, 1.0),
        "interim-mast-17@1": (17, 5, 1.0),
        "mast@3": (14, 10, 1.0),
    }
    for one in document["versions"][:-1]:
        same = one["same_traces"]
        assert same["traces"] == 5
        kappas = [same[version]["cohen_kappa"] for version in ("here", "last")]
        assert [(kappa["value"], kappa["ci"]) for kappa in kappas] == [(1.0, None)] * 2
    assert [version["look_again"] for version in document["versions"]] == [0, 0, 0]
    assert json.dumps(document)
