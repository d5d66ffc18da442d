"""``mast-tui judge --guidelines --examples FILE``: prompts with guidelines and examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mast_tui.adjudication import GuidelineBook
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import scan
from mast_tui.workspace import TraceRecord, Workspace
from mast_tui.workspace.registers.hold_out import set_aside
from tests.cli.conftest import Cli, open_workspace
from tests.judges.llm.made_answers import judgement
from tests.judges.llm.server import ModelServer, answer

MAST = load_mast()
TEXT = "Polling a job that is still running is no repetition."


@pytest.fixture
def judge(new_cli: Callable[..., Cli], server: ModelServer) -> Cli:
    """The command for three runs and the model of the server."""
    return new_cli(server, 3)


@contextmanager
def mast_workspace() -> Iterator[Workspace]:
    """Open the workspace of the current directory with its taxonomy."""
    with open_workspace() as workspace:
        workspace.add_taxonomy(MAST)
        yield workspace


def write_guideline(text: str) -> None:
    """Have carol write a guideline on step repetition."""
    with mast_workspace() as workspace:
        GuidelineBook(workspace, MAST, "carol").write("step_repetition", text)


def write_examples(folder: Path, *rows: str) -> Path:
    """Write a table of examples; ``ID`` is the first trace and ``KEY`` its second span."""
    with mast_workspace() as workspace:
        trace = next(iter(scan([folder / "runs"]))).traces[0]
        trace_id = workspace.register_trace(TraceRecord.from_trace(trace))
    lines = ["trace_id,mode,value,span_first,quote,note", *rows]
    text = "\n".join(lines).replace("ID", trace_id).replace("KEY", trace.span(1).key)
    path = folder / "examples.csv"
    path.write_text(text + "\n")
    return path


def system_message(server: ModelServer) -> str:
    messages = server.chats[0].body["messages"]
    assert isinstance(messages, list)
    return str(messages[0]["content"])


def test_guidelines_are_in_the_section_of_their_mode(judge: Cli, server: ModelServer) -> None:
    judge.refused("--guidelines", says="no one has written a guideline")
    plain = judge.json("--dry-run")["judge"]
    write_guideline(f"{TEXT}\nAsk alice@example.org.")
    assert judge.json("--guidelines")["judge"] != plain
    section = system_message(server).split("### 1.3 ")[1].split("### ")[0]
    assert f"As this team has agreed:\n- {TEXT} Ask [redacted" in section
    with mast_workspace() as workspace:
        settings = workspace.runs()[-1].settings
    assert settings is not None
    count, digest = dict(settings.parameters)["guidelines"].split(", ")
    assert (count, len(digest)) == ("1", 8)


def test_a_table_of_examples_is_in_the_prompt_and_replays_byte_for_byte(
    judge: Cli, server: ModelServer, tmp_path: Path
) -> None:
    server.script = lambda body, _: answer(judgement(body), tokens_in=6_000)
    file = write_examples(
        tmp_path,
        "ID,1.3,absent,KEY,,it waits for a job",
        "ID,FM-2.6,present,KEY,run 0 says line 1,it does not do what it says",
    )
    write_guideline(TEXT)
    options = ("--guidelines", "--examples", file)
    recorded = judge.json(*options, "--record", tmp_path / "answers.jsonl")
    system = system_message(server)
    assert '"mode": "1.3", "verdict": "absent", "rationale": "it waits for a job"' in system
    assert '"mode": "2.6", "verdict": "present", "quote": "run 0 says line 1"' in system
    assert len(recorded["examples"]) == 1
    requests = len(server.chats)
    replay = (*options, "--again", "--replay", tmp_path / "answers.jsonl", "--json")
    first, second = (judge.ok(*replay) for _ in range(2))
    assert len(server.chats) == requests
    assert first.out.replace(first.json["run"], second.json["run"]) == second.out
    # The second estimate is based on the lengths of the recorded answers.
    changing = {"run": None, "estimate": None}
    assert first.json | changing == recorded | changing


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
def test_an_unusable_example_is_refused_with_its_line(
    judge: Cli, server: ModelServer, tmp_path: Path, row: str, problem: str
) -> None:
    judge.refused("--examples", write_examples(tmp_path, row), says=(problem, "line 2"))
    assert not server.chats


def test_options_on_examples_that_cannot_be_used_are_refused(judge: Cli, tmp_path: Path) -> None:
    file = write_examples(tmp_path, "ID,1.3,present,KEY,,")
    for options, problem in (
        (("--examples", "nowhere.csv"), "not a number or a file"),
        (("--examples", "3"), "needs --few-shot gold"),
        (("--examples", file, "--few-shot", "gold"), "leave out --few-shot"),
        (("--examples", file, "--decisive"), "leave out --examples"),
    ):
        judge.refused(*options, says=problem, code=2)
    with mast_workspace() as workspace:
        set_aside(workspace, 0.999)
    judge.refused("--examples", file, says="is set aside")
