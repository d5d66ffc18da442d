"""``mast-tui read``: reading and labelling a trace line by line."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pexpect
import pytest
from click.testing import CliRunner

from mast_tui.cli.read import PAGE, LineReader, read_command
from mast_tui.session import Session, set_study
from mast_tui.study import Study
from mast_tui.workspace import Workspace
from tests.ui.stage import MAST, SLUGS, finding, missing, read_trace, suggest, write_trace
from tests.waiting import PATIENCE


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The small trace of twelve spans."""
    return write_trace(tmp_path / "small.json")


@contextmanager
def session_of(path: Path, workspace_path: Path, *, blind: bool = False) -> Iterator[Session]:
    with closing(Workspace.open(workspace_path)) as workspace:
        yield Session.open(workspace, read_trace(path), MAST, "alice", blind=blind)


def output_of(path: Path, workspace_path: Path, *lines: str, blind: bool = False) -> str:
    lines_out: list[str] = []
    with session_of(path, workspace_path, blind=blind) as session:
        LineReader(session, lambda _step: session, lines_out.append).run(iter(lines))
    return "\n".join(lines_out)


def reading(home: Path, *arguments: str) -> pexpect.spawn[str]:
    """Start the command in a terminal."""
    return pexpect.spawn(
        sys.executable,
        ["-m", "mast_tui", "read", *arguments],
        env={**os.environ, "HOME": str(home), "TERM": "dumb"},
        encoding="utf-8",
        timeout=PATIENCE,
        echo=False,
    )


def answers(terminal: pexpect.spawn[str], *lines: str) -> str:
    output = ""
    for line in lines:
        terminal.sendline(line)
        terminal.expect("> ")
        output += terminal.before or ""
    return output.replace("\r", "")


def test_reading_and_labelling_in_a_terminal(small: Path, tmp_path: Path) -> None:
    workspace_path = tmp_path / "w.db"
    terminal = reading(tmp_path, str(small), "--plain", "--workspace", str(workspace_path))
    log_path = tmp_path / "output.txt"
    with closing(terminal), log_path.open("w", encoding="utf-8") as terminal.logfile_read:
        terminal.expect("Who is labelling")
        answers(terminal, "alice")
        assert "#1 of 12, message, user" in terminal.before
        assert "#2 of 12" in answers(terminal, "")
        assert "1.3 Step repetition on #2" in answers(terminal, "13")
        assert "labelled: 1.3 Step repetition" in answers(terminal, "s")
        with session_of(small, workspace_path) as session:  # on disk before the message
            assert [label.mode for label in session.labels] == [SLUGS["1.3"]]
        assert "on a quote in #2" in answers(terminal, "w pods first", "21")
        assert "#3 to #5" in answers(terminal, "j", "v", "j", "j", "26")
        assert "#10 of 12" in answers(terminal, ":10")
        terminal.sendline("q")
        terminal.expect(pexpect.EOF)
    assert "\x1b" not in log_path.read_text("utf-8")
    with session_of(small, workspace_path) as session:
        assert {label.target.quote for label in session.labels} == {None, "pods first"}
        assert len(session.labels) == 3


def test_verdicts_notes_confidence_and_undo(small: Path, tmp_path: Path) -> None:
    workspace_path = tmp_path / "w.db"
    output = output_of(
        small, workspace_path, "t11", "-32", "_31", "u", "m Look here", "f", "13", "f", "M"
    )
    assert "1.1 Disobey task specification on the whole trace" in output
    assert not missing(output, "3.2 No or incomplete verification: absent", "undone: 3.1")
    assert not missing(output, "No label of yours on this span", "fatal")
    assert "3.2 No or incomplete verification, absent" in output
    with session_of(small, workspace_path) as session:
        assert list(session.span_notes.values()) == ["Look here"]
        assert SLUGS["3.1"] not in session.verdicts
    assert "note: Look here" in output_of(small, workspace_path)


def test_confidence_failures_and_the_answer_key(tmp_path: Path) -> None:
    path, workspace_path = write_trace(tmp_path / "t.json", reward=0.0), tmp_path / "w.db"
    output = output_of(path, workspace_path, "c", "13", "c", "c", "E")
    for text in ("No label of yours on this span", "fairly sure", "No later error"):
        assert text in output
    assert "The answer key is hidden" in output_of(path, workspace_path, "i", blind=True)
    assert "Rewards and scores" in output_of(path, workspace_path, "i")


def test_search_and_unknown_lines(small: Path, tmp_path: Path) -> None:
    for lines, text in (
        (("/crashloop",), "#4 of 12"),
        (("/crashloop", "n"), "#6 of 12"),
        (("/nowhere at all",), "Not found"),
        (("k",), "There is no such span"),
        (("zz",), "zz is not a key"),
        (("99",), "99 is not a mode"),
        (("l repet",), "13: 1.3 Step repetition"),
        (("w nowhere at all",), "This text does not contain these exact words"),
        (("n",), "There is no search text"),
    ):
        assert text in output_of(small, tmp_path / "w.db", *lines), lines


def test_suggestions_are_answered(small: Path, tmp_path: Path) -> None:
    workspace_path, trace = tmp_path / "w.db", read_trace(small)
    suggest(workspace_path, trace, [finding(trace, "1.3", 5, 5), finding(trace, "2.6", 9, 9)])
    assert "No suggestion is left" in output_of(small, workspace_path, "]", blind=True)
    output = output_of(small, workspace_path, "]", "a", "]", "x", "]")
    assert not missing(output, "suggests 1.3 Step repetition, #5", "because")
    assert "No suggestion is left" in output
    assert "No suggestion is selected" in output_of(small, workspace_path, "a")
    with session_of(small, workspace_path) as session:
        (label,) = session.labels
        assert label.saw_suggestions


def test_finishing_asks_about_unread_spans(small: Path, tmp_path: Path) -> None:
    workspace_path = tmp_path / "w.db"
    output = output_of(small, workspace_path, "D", "no", "D", "o", "D")
    assert not missing(output, "11 spans were not read", "Not finished")
    assert "finished, 1 of 12 spans read" in output
    assert "Not done: this trace is already finished" in output
    with session_of(small, workspace_path) as session:
        assert session.finished
        assert not session.verdicts
    output = output_of(small, workspace_path, "U", "u", "D", "W")
    assert not missing(output, "Nothing to redo")
    with session_of(small, workspace_path) as session:
        assert session.finished
        assert len(session.verdicts) == 14


def test_a_long_text_is_read_in_pages(tmp_path: Path) -> None:
    text = "\n".join(f"line {number}" for number in range(PAGE + 5))
    path = write_trace(tmp_path / "long.json", [{"role": "user", "content": text}])
    workspace_path = tmp_path / "w.db"
    output = output_of(path, workspace_path)
    assert f"line {PAGE - 1}\nd shows more" in output
    with session_of(path, workspace_path) as session:
        assert not session.read
    output = output_of(path, workspace_path, "d", "d")
    assert not missing(output, f"line {PAGE + 4}", "The text ends here")
    with session_of(path, workspace_path) as session:
        assert len(session.read) == 1


def test_control_characters_are_visible_and_json_is_laid_out(tmp_path: Path) -> None:
    hostile = "\x1b]0;title\x07 \x1b[31mred\x1b[0m \u202e"
    call = json.dumps({"command": "cd /x\nmake all\nmake install", "why": "to see if it builds"})
    steps = [{"role": "user", "content": hostile}, {"role": "tool", "content": call}]
    output = output_of(write_trace(tmp_path / "x.json", steps), tmp_path / "w.db", "j")
    assert not missing(output, "␛]0;title␇ red ⟨U+202E⟩", "    make all\n")
    assert "\x1b" not in output


@pytest.fixture
def study(small: Path, tmp_path: Path) -> Path:
    """The workspace of a blind study of ada and ben, with a suggestion."""
    workspace_path, trace = tmp_path / "w.db", read_trace(small)
    suggest(workspace_path, trace, [finding(trace, "1.3", 5, 5)])
    with closing(Workspace.open(workspace_path)) as workspace:
        set_study(workspace, "dee", Study(MAST.ref, ("ada", "ben"), ("dee",), blind=True))
    return workspace_path


def test_names_in_a_study(small: Path, study: Path, tmp_path: Path) -> None:
    arguments = (tmp_path, str(small), "--workspace", str(study))
    with closing(reading(*arguments)) as terminal:
        terminal.expect("In this study: ada, ben, dee")
        terminal.expect("Who is labelling")
        terminal.sendline("root")
        terminal.expect("root is not in this study: labels under this name do not count. Continue")
        terminal.sendline("")
        terminal.expect("Who is labelling")
        terminal.sendline("root")
        terminal.expect("Continue")
        terminal.sendline("y")
        terminal.expect("as root")
        terminal.expect("> ")
        assert "No suggestion is left" in answers(terminal, "]")
    with closing(reading(*arguments)) as terminal:  # the name is asked for again
        terminal.expect("Who is labelling")
        terminal.sendline("ada")
        terminal.expect("as ada")
    with closing(reading(*arguments)) as terminal:
        terminal.expect("as ada")


def test_names_by_option(small: Path, study: Path, tmp_path: Path) -> None:
    def output(workspace_path: Path, line: str, *options: str, path: Path = small) -> str:
        arguments = [str(path), "--workspace", str(workspace_path), *options]
        done = CliRunner().invoke(read_command, arguments, input=line)
        assert done.exit_code == (0 if options else 2)
        return done.output

    assert "1.3 Step repetition on #1" in output(tmp_path / "x.db", "13\n", "--annotator", "bo")
    assert "give your name with --annotator NAME" in output(tmp_path / "x.db", "13\n")
    first_of_queue = output(tmp_path / "x.db", "M\n", "--annotator", "bo", path=small.parent)
    assert "1.3 Step repetition, #1" in first_of_queue
    three = tmp_path / "three" / "t.jsonl"  # The first of its traces is unreadable.
    steps = [json.dumps({"messages": [{"role": "user", "content": text}]}) for text in "ab"]
    three.parent.mkdir()
    three.write_text("\n".join(('{"messages": [}', *steps)))
    for path, option, text in ((three, (), "  a"), (three, ("--trace", "3"), "  b")):
        assert text in output(tmp_path / "y.db", "q\n", "--annotator", "bo", *option, path=path)
    for path in (three, three.parent):
        moved = output(tmp_path / "y.db", ">\n<\n{\n", "--annotator", "bo", path=path)
        assert [moved.count(text) for text in ("  a", "  b", "no previous trace")] == [2, 1, 1]
    outside = output(study, "]\n", "--annotator", "root")
    assert "root is not in this study: labels under this name do not count" in outside
    assert "No suggestion is left" in outside
    people = "the study has ada, ben, dee; give your name with --annotator NAME"
    assert people in output(study, "]\n")
    adjudicator = output(study, "]\n", "--annotator", "dee")
    assert "annotator of this study" not in adjudicator
    assert "suggests 1.3" in adjudicator
