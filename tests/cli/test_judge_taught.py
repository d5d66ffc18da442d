"""``mast-tui judge --guidelines --examples FILE``: what people teach a model judge."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.adjudication import GuidelineBook
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import scan
from mast_tui.workspace import TraceRecord, Workspace
from mast_tui.workspace.registers.hold_out import set_aside
from tests.cli.conftest import Judge
from tests.judges.llm.made_answers import said
from tests.judges.llm.server import ModelServer, answer

MAST = load_mast()
TEXT = "Polling a job that is still running is no repetition."


@pytest.fixture
def judge(judging: Callable[..., Judge], server: ModelServer) -> Judge:
    """The command over three runs, asked of the server."""
    return judging(server, 3)


def workspace_of(folder: Path) -> Workspace:
    """The workspace of a folder, with its three traces."""
    workspace = Workspace.open(folder / ".mast-tui" / "workspace.db")
    workspace.add_taxonomy(MAST)
    return workspace


def agree_on(folder: Path, text: str) -> None:
    """Carol writes a guideline on step repetition."""
    with closing(workspace_of(folder)) as workspace:
        GuidelineBook(workspace, MAST, "carol").write("step_repetition", text)


def table(folder: Path, *rows: str) -> Path:
    """Write a table of examples; ``ID`` is the first trace and ``KEY`` its second span."""
    with closing(workspace_of(folder)) as workspace:
        trace = next(iter(scan([folder / "runs"]))).traces[0]
        trace_id = workspace.register_trace(TraceRecord.from_trace(trace))
    lines = ["trace_id,mode,value,span_first,quote,note", *rows]
    text = "\n".join(lines).replace("ID", trace_id).replace("KEY", trace.span(1).key)
    path = folder / "examples.csv"
    path.write_text(text + "\n")
    return path


def _system_message(server: ModelServer) -> str:
    messages = server.chats[0].body["messages"]
    assert isinstance(messages, list)
    return str(messages[0]["content"])


def test_guidelines_stand_in_the_section_of_their_mode(
    judge: Judge, server: ModelServer, tmp_path: Path
) -> None:
    none = judge("--guidelines")
    assert none.code == 1
    assert "no one has written a guideline" in none.err
    plain = judge("--dry-run", "--json").json["judge"]
    agree_on(tmp_path, f"{TEXT}\nAsk alice@example.org.")
    done = judge("--guidelines", "--json")
    assert done.code == 0, done.err
    assert done.json["judge"] != plain
    system = _system_message(server)
    section = system.split("### 1.3 ")[1].split("### ")[0]
    assert f"As this team has agreed:\n- {TEXT} Ask [redacted" in section
    with closing(workspace_of(tmp_path)) as workspace:
        settings = workspace.runs()[-1].settings
        assert settings is not None
        count, digest = dict(settings.parameters)["guidelines"].split(", ")
        assert (count, len(digest)) == ("1", 8)


def test_a_table_of_examples_is_shown_and_its_answers_replay_byte_for_byte(
    judge: Judge, server: ModelServer, tmp_path: Path
) -> None:
    server.script = lambda body, _: answer(said(body), tokens_in=6_000)
    file = table(
        tmp_path,
        "ID,1.3,absent,KEY,,it waits for a job",
        "ID,FM-2.6,present,KEY,run 0 says line 1,it does not do what it says",
    )
    agree_on(tmp_path, TEXT)
    options = ("--guidelines", "--examples", file, "--json")
    recorded = judge(*options, "--record", tmp_path / "answers.jsonl")
    assert recorded.code == 0, recorded.err
    system = _system_message(server)
    assert '"mode": "1.3", "verdict": "absent", "rationale": "it waits for a job"' in system
    assert '"mode": "2.6", "verdict": "present", "quote": "run 0 says line 1"' in system
    assert len(recorded.json["examples"]) == 1
    asked = len(server.chats)
    replay = (*options, "--again", "--replay", tmp_path / "answers.jsonl")
    first, second = (judge(*replay) for _ in range(2))
    assert len(server.chats) == asked
    run = first.json["run"]
    assert first.out.replace(run, second.json["run"]) == second.out
    # The estimate knows by then how long answers are.
    for name, value in recorded.json.items():
        if name not in ("run", "estimate"):
            assert first.json[name] == value


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("ID,9.9,present,KEY,,", "has no mode '9.9'"),
        ("ID,1.3,unsure,KEY,,", "present or absent"),
        ("ID,1.3,present,,,", "needs a span"),
        ("ID,1.3,present,KEY,words that nobody said,", "were not found"),
        ("other,1.3,present,KEY,,", "were not found"),
    ],
)
def test_an_example_that_cannot_be_shown_is_refused_with_its_line(
    judge: Judge, server: ModelServer, tmp_path: Path, row: str, problem: str
) -> None:
    done = judge("--examples", table(tmp_path, row))
    assert done.code == 1
    assert problem in done.err
    assert "line 2" in done.err
    assert not server.chats


def test_an_example_is_never_of_a_trace_that_is_set_aside(judge: Judge, tmp_path: Path) -> None:
    file = table(tmp_path, "ID,1.3,present,KEY,,")
    with closing(workspace_of(tmp_path)) as workspace:
        set_aside(workspace, 0.999)
    done = judge("--examples", file)
    assert done.code == 1
    assert "is set aside" in done.err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--examples", "nowhere.csv"), "neither a number nor a file"),
        (("--examples", "3"), "is for --few-shot gold"),
        (("--examples", "FILE", "--few-shot", "gold"), "leave out --few-shot"),
        (("--examples", "FILE", "--decisive"), "leave out --examples"),
    ],
)
def test_wrong_usage(judge: Judge, tmp_path: Path, options: tuple[str, ...], problem: str) -> None:
    file = str(table(tmp_path, "ID,1.3,present,KEY,,"))
    done = judge(*(file if option == "FILE" else option for option in options))
    assert done.code == 2
    assert problem in done.err
