"""The text of a trace as it is sent to a model."""

from __future__ import annotations

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
def test_fit_replaces_only_unsendable_characters(text: str) -> None:
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
def test_offsets_of_sent_text_map_back(parts: list[str]) -> None:
    trace = said([" ".join(parts)])
    view = view_of(trace, DEFAULT)
    shown, original = view.text(0), trace.text(0)
    for at, char in enumerate(shown):
        start, end = view.to_original(0, at, at + 1)
        found = original[start:end]
        assert fit(found) == char or found == "a@x.org" or "@" in found


def test_numbers_of_values_do_not_depend_on_reading_order() -> None:
    trace = said(["from a@x.org", "to b@x.org", "cc c@x.org"])
    backwards, onwards = view_of(trace, DEFAULT), view_of(trace, DEFAULT)
    last_first = [backwards.text(index) for index in (2, 1, 0)][::-1]
    assert last_first == [onwards.text(index) for index in range(3)]
    assert last_first[2] == "cc [redacted e-mail 3]"


def test_all_parts_of_a_request_are_redacted() -> None:
    trace = with_task("Write to ada@x.org").say("I do.", agent="bot ada@x.org")
    trace.call("mail ada@x.org", '{"to": "ada@x.org"}', "sent to ada@x.org")
    for _, request in requests(trace, redaction=DEFAULT):
        _, _, user = sent(request)
        assert "ada@" not in user
        assert user.count("[redacted e-mail 1]") >= 4


def test_short_texts_are_read_once_and_long_ones_not_kept() -> None:
    short = ReadTrace()
    for number in range(50):
        short.say(f"step {number}")
    requests(short)
    assert sorted(short.read) == list(range(50))
    long = ReadTrace()
    for _ in range(6):
        long.say("x" * (sent_module.MOST_CACHED_CHARS // 4))
    view = view_of(long)
    assert len(view.tokens) == 6
    assert [view.text(index)[:1] for index in range(6)] == ["x"] * 6
    assert 6 < len(long.read) <= 12


TASK = "Find out why the shop is slow."


def test_a_task_is_sent_once() -> None:
    for trace, times, mark in (
        (with_task((TASK * 9)[:100]).user(TASK * 9).say("I look."), 9, "task: see #1]"),
        (with_task(TASK).say(f"You plan.\n\n{TASK}\n\nBegin.").say("Yes."), 1, "task: see #1]"),
        (with_task(TASK).say("Done."), 1, "task]"),
    ):
        ((_, request),) = requests(trace)
        boundary, _, user = sent(request)
        assert user.count(TASK) == times
        assert mark in marked_lines(user, boundary)


def test_later_windows_repeat_the_task() -> None:
    trace = MemoryTrace().user(TASK)
    for _ in range(100):
        trace.say("step by step " * 30)
    parts = requests(trace, 2_000)
    assert len(parts) > 2
    for window, request in parts:
        boundary, _, user = sent(request)
        assert user.count(TASK) == 1
        assert ("task]" in marked_lines(user, boundary)) == (window.first > 0)


def test_the_first_user_message_is_the_default_task() -> None:
    view = view_of(MemoryTrace().log("start").user("Mend it.").say("Done.").user("Thanks."))
    assert (view.task, view.task_span) == ("Mend it.", 1)


def test_a_result_names_its_call_unless_it_directly_follows() -> None:
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


def test_names_are_redacted_before_they_are_cut() -> None:
    key = "sk-local-0123456789abcdef"
    for length in range(30, 70):
        name = "n" * length + key
        view = view_of(MemoryTrace().call(name, "{}"), Redaction.none().with_secret(key))
        assert "sk-local" not in view.span(0).tool
