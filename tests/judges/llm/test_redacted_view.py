"""What of a trace is sent, and the way back to its places."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.judges.llm.prompt import redacted_view as sent_module
from mast_tui.judges.llm.prompt.redacted_view import fit
from mast_tui.redaction.engine import Redaction
from mast_tui.traces.model import Role, SpanKind, TraceMeta
from tests.judges.llm.views import marked_lines, requests, said, sent, view_of
from tests.judges.memory_trace import MemoryTrace

DEFAULT = Redaction.default()


def with_task(task: str) -> MemoryTrace:
    """A trace whose source tells the task."""
    return MemoryTrace("t", TraceMeta(task=task))


class ReadTrace(MemoryTrace):
    """Notes which texts are read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[int] = []

    def text(self, index: int, /) -> str:
        self.read.append(index)
        return super().text(index)


@given(st.text(st.characters(), max_size=80))
def test_text_made_fit_keeps_its_length_and_all_that_is_fit(text: str) -> None:
    made = fit(text)
    assert len(made) == len(text)
    made.encode("utf-8")
    assert all(
        new == old or old < " " or old == "\x7f" or "\ud800" <= old <= "\udfff"
        for new, old in zip(made, text, strict=True)
    )
    assert not {char for char in made if char < " "} - {"\n", "\t"}
    assert fit(made) == made


@given(
    st.lists(
        st.one_of(st.text(st.characters(), max_size=10), st.just("a@x.org"), st.just("\x1b[1m")),
        max_size=8,
    )
)
def test_every_place_that_is_sent_leads_back_to_the_trace(parts: list[str]) -> None:
    trace = said([" ".join(parts)])
    view = view_of(trace, DEFAULT)
    shown, original = view.text(0), trace.text(0)
    for at, char in enumerate(shown):
        start, end = view.to_original(0, at, at + 1)
        found = original[start:end]
        assert fit(found) == char or found == "a@x.org" or "@" in found


def test_values_have_the_same_numbers_whatever_is_asked_for_first() -> None:
    trace = said(["from a@x.org", "to b@x.org", "cc c@x.org"])
    backwards, onwards = view_of(trace, DEFAULT), view_of(trace, DEFAULT)
    last_first = [backwards.text(index) for index in (2, 1, 0)][::-1]
    assert last_first == [onwards.text(index) for index in range(3)]
    assert last_first[2] == "cc [redacted e-mail 3]"


def test_everything_that_is_sent_is_redacted() -> None:
    trace = with_task("Write to ada@x.org").say("I do.", agent="bot ada@x.org")
    trace.call("mail ada@x.org", '{"to": "ada@x.org"}', "sent to ada@x.org")
    for _, request in requests(trace, redaction=DEFAULT):
        _, _, user = sent(request)
        assert "ada@" not in user
        assert user.count("[redacted e-mail 1]") >= 4


def test_texts_are_read_once_while_they_fit_into_what_is_kept() -> None:
    trace = ReadTrace()
    for number in range(50):
        trace.say(f"step {number}")
    requests(trace)
    assert sorted(trace.read) == list(range(50))


def test_long_traces_are_not_kept_as_a_whole() -> None:
    trace = ReadTrace()
    for _ in range(6):
        trace.say("x" * (sent_module.MOST_CACHED_CHARS // 4))
    view = view_of(trace)
    assert len(view.tokens) == 6
    assert [view.text(index)[:1] for index in range(6)] == ["x"] * 6
    assert 6 < len(trace.read) <= 12


TASK = "Find out why the shop is slow."


@pytest.mark.parametrize(
    ("trace", "times", "mark"),
    [
        # It is a span, stands within one, or in none.
        (with_task((TASK * 9)[:100]).user(TASK * 9).say("I look."), 9, "task: see #1]"),
        (with_task(TASK).say(f"You plan.\n\n{TASK}\n\nBegin.").say("Yes."), 1, "task: see #1]"),
        (with_task(TASK).say("Done."), 1, "task]"),
    ],
)
def test_a_task_is_sent_once(trace: MemoryTrace, times: int, mark: str) -> None:
    ((_, request),) = requests(trace)
    boundary, _, user = sent(request)
    assert user.count(TASK) == times
    assert mark in marked_lines(user, boundary)


def test_a_later_part_has_the_whole_task() -> None:
    trace = MemoryTrace().user(TASK)
    for _ in range(100):
        trace.say("step by step " * 30)
    parts = requests(trace, 2_000)
    assert len(parts) > 2
    for window, request in parts:
        boundary, _, user = sent(request)
        assert user.count(TASK) == 1
        assert ("task]" in marked_lines(user, boundary)) == (window.first > 0)


def test_a_trace_that_tells_no_task_has_the_first_message_of_the_user() -> None:
    view = view_of(MemoryTrace().log("start").user("Mend it.").say("Done.").user("Thanks."))
    assert (view.task, view.task_span) == ("Mend it.", 1)


def test_a_header_names_the_call_of_a_result_only_where_it_is_not_above() -> None:
    trace = MemoryTrace()
    trace.call("ls", "{}", None, agent="ann").call("ps", "{}", "root", agent="ann", failed=True)
    trace.add(SpanKind.TOOL_RESULT, Role.TOOL, "ann", "a b", name="ls", parent="call_1:call")
    ((_, request),) = requests(trace)
    boundary, _, user = sent(request)
    assert [line for line in marked_lines(user, boundary) if line.startswith("#")] == [
        "#1] tool call | ann | ls",
        "#2] tool call | ann | ps",
        "#3] tool result | error",
        "#4] tool result | ann | ls | result of #1",
    ]


def test_a_secret_in_a_long_name_is_taken_out_before_the_name_is_cut() -> None:
    key = "sk-local-0123456789abcdef"
    for length in range(30, 70):
        name = "n" * length + key
        view = view_of(MemoryTrace().call(name, "{}"), Redaction.none().with_secret(key))
        assert "sk-local" not in view.span(0).tool
