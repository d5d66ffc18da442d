"""``mast-tui read``: a trace read and labelled line by line, in a real terminal and without one."""

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
from tests.ui.stage import MAST, SLUGS, finding, read_trace, suggest, write_trace
from tests.waiting import PATIENCE


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The small trace of twelve spans."""
    return write_trace(tmp_path / "small.json")


@contextmanager
def session_of(path: Path, place: Path, *, blind: bool = False) -> Iterator[Session]:
    """What alice has said of the trace by now."""
    with closing(Workspace.open(place)) as workspace:
        yield Session.open(workspace, read_trace(path), MAST, "alice", blind=blind)


def said_to(path: Path, place: Path, *lines: str, blind: bool = False) -> str:
    """What is printed for these lines."""
    said: list[str] = []
    with session_of(path, place, blind=blind) as session:
        LineReader(session, said.append).run(iter(lines))
    return "\n".join(said)


def answers(terminal: pexpect.spawn[str], *lines: str) -> str:
    """What is printed after these lines."""
    said = ""
    for line in lines:
        terminal.sendline(line)
        terminal.expect("> ")
        said += terminal.before or ""
    return said.replace("\r", "")


def test_one_walks_and_labels_in_a_terminal_and_nothing_is_drawn_over(
    small: Path, tmp_path: Path
) -> None:
    place = tmp_path / "w.db"
    words = ["-m", "mast_tui", "read", str(small), "--plain", "--workspace", str(place)]
    env = {**os.environ, "HOME": str(tmp_path), "TERM": "dumb"}
    terminal = pexpect.spawn(
        sys.executable,
        words,
        env=env,
        encoding="utf-8",
        timeout=PATIENCE,
        echo=False,
    )
    everything = tmp_path / "said.txt"
    with closing(terminal), everything.open("w", encoding="utf-8") as terminal.logfile_read:
        terminal.expect("Who is labelling")
        answers(terminal, "alice")
        assert "#1 of 12, message, user" in terminal.before
        assert "#2 of 12" in answers(terminal, "")
        assert "1.3 Step repetition on #2" in answers(terminal, "13")
        assert "labelled: 1.3 Step repetition" in answers(terminal, "s")
        with session_of(small, place) as session:  # it was on the disk before it was said
            assert [label.mode for label in session.labels] == [SLUGS["1.3"]]
        assert "on words in #2" in answers(terminal, "w pods first", "21")
        assert "#3 to #5" in answers(terminal, "j", "v", "j", "j", "26")
        assert "#10 of 12" in answers(terminal, ":10")
        terminal.sendline("q")
        terminal.expect(pexpect.EOF)
    assert "\x1b" not in everything.read_text("utf-8")
    with session_of(small, place) as session:
        assert {label.target.quote for label in session.labels} == {None, "pods first"}
        assert len(session.labels) == 3


def test_a_name_that_is_given_stands_for_nobodys_login(small: Path, tmp_path: Path) -> None:
    place = tmp_path / "w.db"
    words = [str(small), "--workspace", str(place)]
    named = CliRunner().invoke(read_command, [*words, "--annotator", "bo"], input="13\n")
    assert "1.3 Step repetition on #1" in named.output
    nobody = CliRunner().invoke(read_command, words, input="13\n")
    assert nobody.exit_code == 2
    assert "give your name with --annotator NAME" in nobody.output


def test_verdicts_notes_and_what_is_taken_back(small: Path, tmp_path: Path) -> None:
    place = tmp_path / "w.db"
    said = said_to(small, place, "t11", "-32", "_31", "u", "m Look here", "f", "13", "f", "M")
    assert "1.1 Disobey task specification on the whole trace" in said
    assert "3.2 No or incomplete verification: absent" in said
    assert "taken back: 3.1" in said
    assert "No label of yours on this span" in said
    assert "fatal" in said
    assert "3.2 No or incomplete verification, absent" in said
    with session_of(small, place) as session:
        assert list(session.span_notes.values()) == ["Look here"]
        assert SLUGS["3.1"] not in session.verdicts
    assert "note: Look here" in said_to(small, place)


def test_confidence_the_next_failure_and_the_answer_key(tmp_path: Path) -> None:
    path, place = write_trace(tmp_path / "t.json", reward=0.0), tmp_path / "w.db"
    said = said_to(path, place, "c", "13", "c", "c", "E")
    assert "No label of yours on this span" in said
    assert "fairly sure" in said
    assert "No later step failed" in said
    assert "The answer key is hidden" in said_to(path, place, "i", blind=True)
    assert "Rewards and scores" in said_to(path, place, "i")


def test_finding_and_what_is_no_key(small: Path, tmp_path: Path) -> None:
    place = tmp_path / "w.db"
    assert "#4 of 12" in said_to(small, place, "/crashloop")
    assert "#6 of 12" in said_to(small, place, "/crashloop", "n")
    assert "Not found" in said_to(small, place, "/nowhere at all")
    assert "There is no such span" in said_to(small, place, "k")
    assert "zz is not a key" in said_to(small, place, "zz")
    assert "99 is not a mode" in said_to(small, place, "99")
    assert "13: 1.3 Step repetition" in said_to(small, place, "l repet")
    assert "This text does not contain these exact words" in said_to(
        small, place, "w nowhere at all"
    )
    assert "There is no search text" in said_to(small, place, "n")


def test_suggestions_are_walked_and_answered_unless_one_is_blind(
    small: Path, tmp_path: Path
) -> None:
    place, trace = tmp_path / "w.db", read_trace(small)
    suggest(place, trace, [finding(trace, "1.3", 5, 5), finding(trace, "2.6", 9, 9)])
    assert "No suggestion is left" in said_to(small, place, "]", blind=True)
    said = said_to(small, place, "]", "a", "]", "x", "]")
    assert "suggests 1.3 Step repetition, #5" in said
    assert "because" in said
    assert "No suggestion is left" in said
    assert "No suggestion is selected" in said_to(small, place, "a")
    with session_of(small, place) as session:
        (label,) = session.labels
        assert label.saw_suggestions


def test_finishing_asks_where_spans_were_not_read(small: Path, tmp_path: Path) -> None:
    place = tmp_path / "w.db"
    said = said_to(small, place, "D", "no", "D", "o", "D")
    assert "11 spans were not read" in said
    assert "Not finished" in said
    assert "finished, 1 of 12 spans read" in said
    assert "Not done: this trace is finished already" in said
    with session_of(small, place) as session:
        assert session.finished
        assert not session.verdicts


def test_a_long_text_is_read_on_and_counts_as_read_at_its_end(tmp_path: Path) -> None:
    text = "\n".join(f"line {number}" for number in range(PAGE + 5))
    path = write_trace(tmp_path / "long.json", [{"role": "user", "content": text}])
    place = tmp_path / "w.db"
    said = said_to(path, place)
    assert f"line {PAGE - 1}\nd has more" in said
    with session_of(path, place) as session:
        assert not session.read
    said = said_to(path, place, "d", "d")
    assert f"line {PAGE + 4}" in said
    assert "The text ends here" in said
    with session_of(path, place) as session:
        assert len(session.read) == 1


def test_what_a_terminal_obeys_is_seen_and_json_is_set_out(tmp_path: Path) -> None:
    hostile = "\x1b]0;title\x07 \x1b[31mred\x1b[0m \u202e"
    call = json.dumps({"command": "cd /x\nmake all\nmake install", "why": "to see if it builds"})
    steps = [{"role": "user", "content": hostile}, {"role": "tool", "content": call}]
    said = said_to(write_trace(tmp_path / "x.json", steps), tmp_path / "w.db", "j")
    assert "␛]0;title␇ red ⟨U+202E⟩" in said
    assert "    make all\n" in said
    assert "\x1b" not in said


@pytest.fixture
def study(small: Path, tmp_path: Path) -> Path:
    """The workspace of a blind study of ada and ben, with a suggestion."""
    place, trace = tmp_path / "w.db", read_trace(small)
    suggest(place, trace, [finding(trace, "1.3", 5, 5)])
    with closing(Workspace.open(place)) as workspace:
        set_study(workspace, "dee", Study(MAST.ref, ("ada", "ben"), ("dee",), blind=True))
    return place


def test_in_a_study_its_people_are_listed_and_another_name_is_confirmed(
    small: Path, study: Path, tmp_path: Path
) -> None:
    words = ["-m", "mast_tui", "read", str(small), "--workspace", str(study)]
    env = {**os.environ, "HOME": str(tmp_path), "TERM": "dumb"}

    def reading() -> pexpect.spawn[str]:
        return pexpect.spawn(
            sys.executable, words, env=env, encoding="utf-8", timeout=PATIENCE, echo=False
        )

    with closing(reading()) as terminal:
        terminal.expect("In this study: ada, ben, dee")
        terminal.expect("Who is labelling")
        terminal.sendline("root")
        terminal.expect("root is not in this study; these labels will not count. Continue")
        terminal.sendline("")
        terminal.expect("Who is labelling")
        terminal.sendline("root")
        terminal.expect("Continue")
        terminal.sendline("y")
        terminal.expect("as root")
        terminal.expect("> ")
        assert "No suggestion is left" in answers(terminal, "]")
    with closing(reading()) as terminal:  # the name is not used again without asking
        terminal.expect("Who is labelling")
        terminal.sendline("ada")
        terminal.expect("as ada")
    with closing(reading()) as terminal:
        terminal.expect("as ada")


def test_a_name_outside_the_study_is_told_and_works_blind(small: Path, study: Path) -> None:
    words = [str(small), "--workspace", str(study), "--annotator"]
    outside = CliRunner().invoke(read_command, [*words, "root"], input="]\n")
    assert "root is not in this study; these labels will not count" in outside.output
    assert "No suggestion is left" in outside.output
    nobody = CliRunner().invoke(read_command, words[:-1], input="]\n")
    assert nobody.exit_code == 2
    assert "the study has ada, ben, dee; give your name with --annotator NAME" in nobody.output
    adjudicator = CliRunner().invoke(read_command, [*words, "dee"], input="]\n")
    assert "not in this study" not in adjudicator.output
    assert "suggests 1.3" in adjudicator.output
