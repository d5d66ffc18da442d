"""Views of small traces, and the requests about them as they are sent."""

from __future__ import annotations

from collections.abc import Sequence

from mast_tui.judges.llm.prompt.prompt import Prompt, boundary_of, messages
from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.llm.prompt.windows import plan
from mast_tui.judges.llm.request import Parameters, Request, Window
from mast_tui.redaction.engine import Redaction
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.model import Trace
from tests.judges.memory_trace import MemoryTrace

MAST = load_mast()


SECRET = b"drawn for the tests"


def trace_of(texts: Sequence[str]) -> MemoryTrace:
    trace = MemoryTrace()
    for text in texts:
        trace.say(text)
    return trace


def view_of(trace: Trace, redaction: Redaction | None = None) -> RedactedView:
    return RedactedView(trace, Redaction.none() if redaction is None else redaction)


def prompt_of(window_tokens: int = 24_000) -> tuple[Prompt, Parameters]:
    parameters = Parameters("model", window_tokens=window_tokens)
    return Prompt(MAST, parameters), parameters


def requests(
    trace: Trace, window_tokens: int = 24_000, redaction: Redaction | None = None
) -> list[tuple[Window, Request]]:
    prompt, parameters = prompt_of(window_tokens)
    view = view_of(trace, redaction)
    return [
        (window, prompt.request(view, window, "so it went" if window.first else ""))
        for window in plan(view, prompt, parameters)
    ]


def sent(request: Request) -> tuple[str, str, str]:
    """Return boundary, system message and user message of a request."""
    system, user = messages(request, SECRET)
    return boundary_of(request, SECRET), system["content"], user["content"]


def marked_lines(user: str, boundary: str) -> list[str]:
    """Return the lines of the prompt in a user message, without the boundary."""
    prefix = f"[{boundary} "
    return [line.removeprefix(prefix) for line in user.split("\n") if line.startswith(prefix)]
