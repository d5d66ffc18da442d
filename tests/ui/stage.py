"""The running app, small traces and stored findings for the tests of screens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Container, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from msgspec import structs
from textual import events
from textual.app import App, ComposeResult
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.widget import Widget

from mast_tui.labels import Evidence, Finding, Target
from mast_tui.session import Session
from mast_tui.taxonomy.loader import load_mast
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace
from mast_tui.ui.actions.registry import key_of
from mast_tui.ui.annotate.screen import AnnotateScreen
from mast_tui.ui.app import MastApp
from mast_tui.ui.options import AppOptions
from mast_tui.ui.services.open_workspace import remember_welcome
from mast_tui.workspace import TraceRecord, Workspace, store_judgement
from tests import waiting
from tests.ui.settle import run_briefly, run_until_idle, settle

MAST = load_mast()
SLUGS = {mode.code: mode.slug for mode in MAST.modes}
CODES = {mode.slug: mode.code for mode in MAST.modes}
JUDGE = "judge:rules@1"

shown_key = partial(key_of, keymap={})
"""Returns the text of the default key of an action."""

ScreenT = TypeVar("ScreenT")
Message = Mapping[str, object]
LabelledSpans = set[tuple[str, int, int]]
"""Code of the mode, first and last span (from 1) of labels; the whole trace is 0 to 0."""


def call(number: int, name: str, arguments: str) -> Message:
    """Return a message that calls a tool."""
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}],
    }


def result(number: int, text: str) -> Message:
    """Return a message with the result of a tool."""
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": text}


PLAN = "I look at the pods first, then at the Événements of today."
"""The text of span #2; a quote of it ends behind letters that are more than one byte."""

SMALL: tuple[Message, ...] = (
    {"role": "user", "content": "Find out why the checkout is slow. Do not restart anything."},
    {"role": "assistant", "content": PLAN},
    call(1, "get_pods", '{"namespace": "shop"}'),
    result(1, "checkout-1 Running\ncheckout-2 CrashLoopBackOff"),
    call(2, "get_pods", '{"namespace": "shop"}'),
    result(2, "checkout-1 Running\ncheckout-2 CrashLoopBackOff"),
    call(3, "get_pods", '{"namespace": "shop"}'),
    result(3, "checkout-1 Running\ncheckout-2 CrashLoopBackOff"),
    {"role": "assistant", "content": "The second pod crashes. I restart it now."},
    call(4, "restart", '{"pod": "checkout-2"}'),
    result(4, "restarted"),
    {"role": "assistant", "content": "Done: the checkout is fast again."},
)
"""Twelve spans: #3 to #8 are the same call three times over, with its answer."""


def write_trace(path: Path, messages: Sequence[Message] = SMALL, **fields: object) -> Path:
    """Write a record with a list of messages and other ``fields``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**fields, "messages": list(messages)}, ensure_ascii=False), "utf-8")
    return path


def write_runs(folder: Path, *names: str) -> None:
    """Write small traces of these names, each with its own task."""
    for name in names:
        steps: list[Message] = [{"role": "user", "content": f"task of {name}"}, *SMALL[1:]]
        write_trace(folder / f"{name}.json", steps, model="m-1")


def read_trace(path: Path) -> Trace:
    """Read the one trace of a file to its end."""
    trace = read_file(path, named=True).traces[0]
    read_fully(trace)
    return trace


def finding(
    trace: Trace,
    code: str,
    first: int,
    last: int,
    *,
    quote: str | None = None,
    why: str = "because",
) -> Finding:
    """Return a finding on spans ``first`` to ``last`` (from 1), with a quote from the last."""
    key = trace.span(last - 1).key
    evidence = None
    if quote is not None:
        start = trace.text(last - 1).index(quote)
        evidence = Evidence(key=key, quote=quote, char_start=start, char_end=start + len(quote))
    return Finding(SLUGS[code], trace.span(first - 1).key, key, why, 0.8, evidence=evidence)


def with_evidence(original: Finding, **changes: object) -> Finding:
    """Return a finding with changed evidence."""
    assert original.evidence is not None
    return structs.replace(original, evidence=structs.replace(original.evidence, **changes))


def store_findings(
    store: Workspace,
    trace_id: str,
    findings: Iterable[Finding],
    judge: str = JUDGE,
    **fields: Any,
) -> None:
    """Store the findings of a judge that looks at all modes; see ``store_judgement``."""
    modes = tuple(SLUGS.values())
    fields |= {"judge": judge, "looks_at": modes, "findings": findings}
    store_judgement(store, taxonomy=MAST.ref, trace_id=trace_id, **fields)


def suggest(workspace: Path, trace: Trace, findings: Iterable[Finding]) -> None:
    """Store the findings of a judge on a trace."""
    store = Workspace.open(workspace)
    try:
        store.add_taxonomy(MAST)
        store_findings(store, store.register_trace(TraceRecord.from_trace(trace)), findings)
    finally:
        store.close()


def missing(container: Container[str], *texts: str) -> list[str]:
    """Return the texts that a text or a list does not contain."""
    return [text for text in texts if text not in container]


@dataclass(slots=True)
class Stage:
    """A running app: a test presses keys and reads the screen."""

    app: MastApp
    pilot: Pilot[None]

    async def press(self, *keys: str) -> None:
        """Press keys, and wait until their actions are done.

        The keys arrive all at once, as from a fast typist, a paste or over a slow line.
        """
        await self.send(*keys)
        await settle(self.pilot)
        for _ in waiting.until(lambda: not any(screen.text_waits for screen in self._annotating)):
            await self.pilot.pause()

    async def send(self, *keys: str) -> None:
        """Press keys, and wait only until the app has handled them."""
        for key in keys:
            self.app.post_message(key_event(key))
        # On a busy machine the app may not have received any of them yet.
        received = asyncio.Event()
        self.app.call_later(received.set)
        for _ in waiting.until(lambda: self._is_ending or received.is_set()):
            await run_briefly(self.app)
        app = self.app
        for _ in waiting.until(
            lambda: self._is_ending or (app.input_queue.idle and app.writes.idle)
        ):
            await run_briefly(self.app)
        await run_until_idle(self.app)

    async def wait_for_trace(self) -> None:
        """Wait until the trace of a single file is on screen, even if other work continues."""
        for _ in waiting.until(lambda: any(screen.trace for screen in self._annotating)):
            await run_briefly(self.app)

    @property
    def annotate(self) -> AnnotateScreen:
        """The open annotate screen, even below a dialog."""
        return self._annotating[0]

    @property
    def _is_ending(self) -> bool:
        """Whether the app is ending and accepts no more keys."""
        return self.app.return_code is not None

    @property
    def _annotating(self) -> list[AnnotateScreen]:
        return [s for s in self.app.screen_stack if isinstance(s, AnnotateScreen)]

    @property
    def session(self) -> Session:
        """The session on the open trace."""
        session = self.annotate.session
        assert session is not None
        return session

    async def until(self, done: Callable[[], object]) -> None:
        """Let the app run until a condition holds."""
        for _ in waiting.until(done):
            await self.pilot.pause(0.01)

    async def undo_all(self) -> None:
        """Undo all changes to the open trace, and go to its first span."""
        while "Nothing to undo" not in self.message:
            await self.press("u")
        self.annotate.timeline.focus()
        await self.press("g")

    def screen(self, kind: type[ScreenT]) -> ScreenT:
        """Return the topmost screen, which is of this kind."""
        screen = self.app.screen
        assert isinstance(screen, kind), type(screen).__name__
        return screen

    def open_screen(self, kind: type[ScreenT]) -> ScreenT:
        """Return the open screen of this kind, even below a dialog."""
        return next(screen for screen in self.app.screen_stack if isinstance(screen, kind))

    @property
    def trace(self) -> Trace:
        """The open trace."""
        trace = self.annotate.trace
        assert trace is not None
        return trace

    @property
    def notices(self) -> list[str]:
        """The notices in the corner of the screen."""
        return [notice.message for notice in self.app._notifications]

    @property
    def number(self) -> int:
        """The number of the span under the cursor, from 1."""
        return self.annotate.index + 1

    @property
    def message(self) -> str:
        """The message in the last line."""
        return self.annotate.hints.message

    @property
    def labels(self) -> LabelledSpans:
        """The labels of the session's annotator."""
        labels = self.session.labels
        return {(CODES[label.mode], *self.span_range(label.target)) for label in labels}

    def span_range(self, target: Target) -> tuple[int, int]:
        """Return the first and last span of a target, from 1."""
        if target.first is None or target.last is None:
            return 0, 0
        first = self.trace.index_of(target.first)
        last = self.trace.index_of(target.last)
        assert first is not None
        assert last is not None
        return first + 1, last + 1

    @property
    def lines(self) -> list[str]:
        """The lines of the screen, empty before its first layout."""
        screen = self.app.screen
        texts = [strip.text for strip in screen._compositor.render_strips(screen.size)]
        return texts or [""] * self.app.size.height

    @property
    def text(self) -> str:
        """The text of the screen."""
        return "\n".join(self.lines)

    def row(self, number: int) -> str:
        """The timeline's row of a span, as it is drawn."""
        timeline = self.annotate.timeline
        width = timeline.scrollable_content_region.width
        return timeline.render_row(timeline.rows.row_of(number - 1), width).text


_CHARACTERS = {"space": " ", "enter": "\r", "tab": "\t", "escape": "\x1b", "backspace": "\x7f"}


def key_event(key: str) -> events.Key:
    """Return the event of a key, given by its name or as a character."""
    if len(key) > 1:
        return events.Key(key, _CHARACTERS.get(key))
    return events.Key(_character_to_key(key), key)


class _PatientApp(MastApp):
    """The app with notices that a test sees on a busy machine too."""

    NOTIFICATION_TIMEOUT = 60.0


@asynccontextmanager
async def stage(
    *paths: Path,
    workspace: Path | str | None = None,
    annotator: str | None = "alice",
    blind: bool = False,
    assisted: bool = False,
    samples: bool = False,
    welcomed: bool = True,
    size: tuple[int, int] = (120, 40),
    settled: bool = True,
    taxonomy: Taxonomy = MAST,
) -> AsyncIterator[Stage]:
    """Run the app on these files; wait until it is idle, unless ``settled`` is false."""
    if welcomed:
        remember_welcome()
    workspace_option = None if workspace is None else str(workspace)
    options = AppOptions(paths, samples, workspace_option, annotator, None, blind, assisted)
    app = _PatientApp(options, taxonomy)
    try:
        async with app.run_test(size=size) as pilot:
            if settled:
                await settle(pilot)
            yield Stage(app, pilot)
    finally:
        app.workspace.close()


class WidgetApp(App[None]):
    """An app that consists of a few widgets."""

    def __init__(self, *widgets: Widget) -> None:
        super().__init__()
        self.widgets = widgets

    def compose(self) -> ComposeResult:
        yield from self.widgets
