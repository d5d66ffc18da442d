"""What is looked for in many files, and what was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from mast_tui.traces.io.url_secrets import ADDRESSES
from mast_tui.traces.model import Span, SpanKind, SpanStatus
from mast_tui.traces.search.pattern import Pattern
from mast_tui.traces.search.text_search import Matcher, Needle, pattern_in

_TOOL_KINDS: Final = frozenset((SpanKind.TOOL_CALL, SpanKind.TOOL_RESULT))


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for: a text, and what else must be true of a span.

    Without a text every span is found of which the rest is true. Small letters find capitals too;
    with a capital in the text, or ``exact``, case counts. ``kinds`` are values of ``SpanKind``,
    none of them means any; ``tool`` and ``agent`` are names, in which case does not count.
    """

    text: str = ""
    regex: bool = False
    exact: bool = False
    tool: str | None = None
    agent: str | None = None
    kinds: tuple[str, ...] = ()
    failed: bool = False

    @classmethod
    def typed(cls, words: str) -> Query:
        """What somebody has typed: a text, or a regular expression between two slashes."""
        pattern = pattern_in(words)
        return cls(words) if pattern is None else cls(pattern, regex=True)

    def matcher(self) -> Matcher | None:
        """Make what looks for the text; None where there is none.

        Raises:
            InvalidPattern: The text is no regular expression.
        """
        if not self.text:
            return None
        return (Pattern if self.regex else Needle)(self.text, exact=self.exact)

    def takes(self, span: Span) -> bool:
        """Whether all but the text is as asked for."""
        if self.failed and span.status is not SpanStatus.ERROR:
            return False
        if self.kinds and span.kind not in self.kinds:
            return False
        if self.agent is not None and span.agent.casefold() != self.agent.casefold():
            return False
        if self.tool is None:
            return True
        return span.kind in _TOOL_KINDS and (span.name or "").casefold() == self.tool.casefold()


class Hit(NamedTuple):
    """A span that was found.

    ``path`` and ``record`` tell the trace, ``span`` counts from 0; ``place`` is where it stands, as
    ``file:line`` or ``file#/pointer``. ``matches`` is how often the text stands in the span;
    ``start`` and ``end`` of the first are code points of the span's text, None where only its name
    or its row has it. ``preview`` is foreign text on one line, of which the match is what lies from
    ``lit`` to ``unlit``.
    """

    path: str
    record: int | None
    trace_id: str
    place: str
    span: int
    key: str
    kind: str
    agent: str
    name: str | None
    status: str
    matches: int
    start: int | None
    end: int | None
    preview: str
    lit: int
    unlit: int


class NotSearched(NamedTuple):
    """A file in which not everything could be looked at, and why."""

    path: str
    reason: str


class FileToSearch(NamedTuple):
    """A file, or a folder that holds one run.

    ``members`` are the files of its sub-agents, ``size`` is how many bytes it has itself, and
    ``records`` are the numbers of the traces that are searched; None for all.
    """

    path: str
    members: tuple[str, ...] = ()
    named: bool = False
    size: int = 0
    records: frozenset[int] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process reads the file, and needs the user and query of its URL.
        addresses = (ADDRESSES.whole(self.path), tuple(map(ADDRESSES.whole, self.members)))
        return _sent_file, (*addresses, self.named, self.size, self.records)


def _sent_file(
    address: str,
    members: tuple[str, ...],
    named: bool,
    size: int,
    records: frozenset[int] | None,
) -> FileToSearch:
    public = ADDRESSES.public
    return FileToSearch(public(address), tuple(map(public, members)), named, size, records)
