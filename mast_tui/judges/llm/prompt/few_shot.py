"""Examples for the prompt, from gold or from the samples: places of a mode, and near misses."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from mast_tui.errors import MastError
from mast_tui.gold import GoldLabel, GoldTrace, Source
from mast_tui.judges.llm.prompt.prompt import Example
from mast_tui.judges.llm.prompt.redaction import Redaction
from mast_tui.labels import Target, TraceWork, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.traces.library import read_file, read_fully, samples_folder
from mast_tui.traces.model import Span, Trace
from mast_tui.workspace import TraceRecord, Workspace

EXAMPLES: Final = 4
"""How many there are unless somebody says otherwise."""

ABSENT_IN: Final = 4
"""One in so many is a place where a mode does not show."""

MOST_CHARS: Final = 1_800
"""About so many characters of text an excerpt has: a few hundred tokens."""

MOST_SPANS: Final = 4

BUILT_IN_CHARS: Final = 700
"""The same of one of the built-in examples, of which there are two a mode."""

MOST_QUOTE: Final = 160

_LEFT_OUT: Final = "[…]"

_SETTLED: Final = (Source.UNANIMOUS, Source.ADJUDICATED)
_NAME: Final = "example"

TraceAtHand = Callable[[str], Trace | None]
"""The trace with an id, read to its end, or None where its file is not there."""


class FewShotError(MastError):
    """No examples can be had; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class GoldCase:
    """The gold of one trace, and what the sides had said."""

    trace_id: str
    gold: GoldTrace
    sides: tuple[TraceWork, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """What an example is about: a mode that shows in a trace, or does not."""

    mode: str
    verdict: VerdictValue
    trace_id: str

    def words(self) -> str:
        """For the record of a run."""
        return f"{self.mode} {self.verdict} {self.trace_id}"

    @classmethod
    def from_words(cls, words: str) -> Choice:
        """The choice that was recorded; raises ``ValueError`` for other words."""
        mode, verdict, trace_id = words.split(" ", 2)
        return cls(mode, VerdictValue(verdict), trace_id)


Chosen = tuple[tuple[Choice, Example], ...]
"""Examples with what each is about."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """``quote`` are words in a range of several spans, whose target has none."""

    choice: Choice
    target: Target
    rationale: str
    quote: str | None = None


def choose_examples(
    cases: Iterable[GoldCase],
    taxonomy: Taxonomy,
    at_hand: TraceAtHand,
    redaction: Redaction,
    *,
    count: int = EXAMPLES,
    may_use: Callable[[str], bool] = lambda _: True,
) -> Chosen:
    """So many examples of settled gold, redacted; the same gold gives the same ones.

    Each is of a mode of its own as far as there are modes, and of a trace of its own as far as
    there are traces; one in four shows where a mode is absent although it looks like it. Traces
    that ``may_use`` refuses are never looked at.

    Raises:
        FewShotError: there is no settled gold with a place, or no file of its traces is there.
        OSError: a trace's file could not be read.
    """
    settled = [case for case in cases if _is_settled(case.gold)]
    if not settled:
        raise FewShotError(
            "there is no settled gold to take examples from yet: verdicts count on which two "
            "people agree, or that were adjudicated"
        )
    allowed = [case for case in settled if may_use(case.trace_id)]
    if not allowed:
        raise FewShotError("all traces with settled gold are set aside; no prompt may use them")
    present = [found for case in allowed for found in _present(case)]
    near = [found for case in allowed for found in _near_misses(case, taxonomy)]
    seed = _seed(present, near)
    wanted_near = min(len(near), count // ABSENT_IN) if present else count
    shown = _Shown(at_hand, redaction)
    chosen = shown.of(_spread(present, seed), count - wanted_near)
    chosen += shown.of(_spread(near, seed), count - len(chosen))
    if len(chosen) < count:
        chosen += shown.of(_spread(present, seed), count - len(chosen))
    if not chosen:
        raise FewShotError(_why_none(present or near))
    return tuple(chosen)


def built_in_examples(taxonomy: Taxonomy, redaction: Redaction) -> tuple[Example, ...]:
    """Take a place where each mode shows, and one where it nearly does, from the sample traces.

    What was planted there, and what beside it only looks like a failure, is listed with them.

    Args:
        taxonomy: Its modes that are listed there have examples.
        redaction: What is taken out of them.

    Raises:
        FewShotError: The samples are not here, or hold nothing of this taxonomy.
        OSError: A file of them cannot be read.
    """
    try:
        folder = samples_folder()
    except FileNotFoundError as error:
        raise FewShotError(str(error)) from error
    traces: dict[str, Trace] = {}
    listed: dict[tuple[str, VerdictValue], list[_Candidate]] = {}
    for name, verdict in (
        ("planted.jsonl", VerdictValue.PRESENT),
        ("clean.jsonl", VerdictValue.ABSENT),
    ):
        for line in (folder / name).read_bytes().splitlines():
            row = orjson.loads(line)
            trace = _sample(folder / row["trace"], row["record"], traces)
            choice = Choice(row["slug"], verdict, trace.identity.trace_id)
            target = Target(row["first"], row["last"])
            listed.setdefault((row["slug"], verdict), []).append(
                _Candidate(choice, target, row["why"], row["quote"])
            )
    shown = _Shown(traces.get, redaction, BUILT_IN_CHARS)
    used: Counter[str] = Counter()
    examples = []
    for mode in taxonomy.modes:
        for verdict in (VerdictValue.PRESENT, VerdictValue.ABSENT):
            found = listed.get((mode.slug, verdict), [])
            # What can be seen in one place, with its words, and from one trace after the other.
            found.sort(
                key=lambda one: (
                    one.target.first != one.target.last,
                    one.quote is None,
                    used[one.choice.trace_id],
                )
            )
            for choice, example in shown.of(found, 1):
                used[choice.trace_id] += 1
                examples.append(example)
    if not examples:
        raise FewShotError(
            f"the built-in examples are of MAST, and {taxonomy.ref} has none of its modes; "
            "--few-shot gold takes them from your own gold"
        )
    return tuple(examples)


def _sample(path: Path, record: int | None, known: dict[str, Trace]) -> Trace:
    """One of the sample traces; a file is read once, and ``known`` holds all of it then."""
    if all(trace.path != path for trace in known.values()):
        for trace in read_file(path, named=True).traces:
            read_fully(trace)
            known[trace.identity.trace_id] = trace
    return next(one for one in known.values() if (one.path, one.record) == (path, record))


def repeat_examples(
    choices: Sequence[Choice],
    cases: Iterable[GoldCase],
    taxonomy: Taxonomy,
    at_hand: TraceAtHand,
    redaction: Redaction,
) -> Chosen | None:
    """The examples that were chosen before, or None where the gold does not say so any more."""
    by_trace = {case.trace_id: case for case in cases}
    shown = _Shown(at_hand, redaction)
    chosen: list[tuple[Choice, Example]] = []
    for choice in choices:
        case = by_trace.get(choice.trace_id)
        if case is None:
            return None
        found = [*_present(case), *_near_misses(case, taxonomy)]
        again = shown.of((c for c in found if c.choice == choice), 1)
        if not again:
            return None
        chosen += again
    return tuple(chosen)


def noted(chosen: Chosen) -> tuple[tuple[str, str], ...]:
    """What was chosen as the settings of a run record it, by name."""
    return tuple((f"{_NAME} {n}", choice.words()) for n, (choice, _) in enumerate(chosen, 1))


def noted_choices(parameters: Iterable[tuple[str, str]]) -> tuple[Choice, ...]:
    """The choices that the settings of a run record, in their order."""
    found = [
        (int(name.removeprefix(f"{_NAME} ")), Choice.from_words(words))
        for name, words in parameters
        if name.startswith(f"{_NAME} ")
    ]
    return tuple(choice for _, choice in sorted(found, key=lambda pair: pair[0]))


def traces_in_files(workspace: Workspace) -> TraceAtHand:
    """Finds the workspace's traces where their files were last seen."""
    records = {record.trace_id: record for record in workspace.traces()}

    def at_hand(trace_id: str) -> Trace | None:
        record = records.get(trace_id)
        if record is None or record.path is None or not record.path.exists():
            return None
        for found in read_file(record.path, named=True).traces:
            here = workspace.find_trace(TraceRecord.of(found))
            if here is not None and here.trace_id == trace_id:
                read_fully(found)
                return found
        return None

    return at_hand


class _Shown:
    """Makes examples of candidates, each trace read once and no choice taken twice."""

    def __init__(
        self, at_hand: TraceAtHand, redaction: Redaction, most_chars: int = MOST_CHARS
    ) -> None:
        self._at_hand = at_hand
        self._redaction = redaction
        self._most_chars = most_chars
        self._taken: set[Choice] = set()

    def of(self, candidates: Iterable[_Candidate], count: int) -> list[tuple[Choice, Example]]:
        """Up to so many examples, of the first candidates whose place can be shown."""
        chosen: list[tuple[Choice, Example]] = []
        for candidate in candidates:
            if len(chosen) >= count:
                break
            if candidate.choice in self._taken:
                continue
            example = self._example(candidate)
            if example is not None:
                self._taken.add(candidate.choice)
                chosen.append((candidate.choice, example))
        return chosen

    def _example(self, candidate: _Candidate) -> Example | None:
        choice = candidate.choice
        trace = self._at_hand(choice.trace_id)
        shown = None if trace is None else _excerpt_of(trace, candidate, self._most_chars)
        if shown is None:
            return None
        text, quote = shown
        is_present = choice.verdict is VerdictValue.PRESENT
        return Example(
            trace_id=choice.trace_id,
            mode=choice.mode,
            verdict=choice.verdict,
            excerpt=text,
            quote=quote if is_present else None,
            rationale=candidate.rationale,
        ).redacted(self._redaction)


def _is_settled(gold: GoldTrace) -> bool:
    return any(verdict.source in _SETTLED for verdict in gold.verdicts)


def _present(case: GoldCase) -> Iterator[_Candidate]:
    """Modes that show, each at its best place."""
    for verdict in case.gold.verdicts:
        if verdict.source not in _SETTLED or verdict.value is not VerdictValue.PRESENT:
            continue
        label = _best_label(case.gold, verdict.mode)
        if label is not None:
            said = next((note for _, note in label.notes if note.strip()), "")
            choice = Choice(verdict.mode, VerdictValue.PRESENT, case.trace_id)
            yield _Candidate(choice, label.target, said or label.reason or verdict.reason)


def _near_misses(case: GoldCase, taxonomy: Taxonomy) -> Iterator[_Candidate]:
    """Modes that do not show although somebody thought so, or one like it shows."""
    for verdict in case.gold.verdicts:
        if verdict.source not in _SETTLED or verdict.value is not VerdictValue.ABSENT:
            continue
        choice = Choice(verdict.mode, VerdictValue.ABSENT, case.trace_id)
        marked = [
            label
            for side in case.sides
            for label in side.labels.values()
            if label.mode == verdict.mode and not label.target.is_whole
        ]
        if marked:
            why = verdict.reason or "it looks like it, and after a second look it is not"
            yield _Candidate(choice, min(marked, key=lambda label: label.id).target, why)
            continue
        mode = taxonomy.mode(verdict.mode)
        for like in mode.confusable:
            label = _best_label(case.gold, like.slug)
            if label is not None:
                yield _Candidate(choice, label.target, _instead(taxonomy, like.slug, mode))
                break


def _instead(taxonomy: Taxonomy, slug: str, mode: Mode) -> str:
    other = taxonomy.mode(slug)
    difference = next(like.difference for like in mode.confusable if like.slug == slug)
    return f"this is {other.code} {other.name}: {difference}"


def _best_label(gold: GoldTrace, mode: str) -> GoldLabel | None:
    """The settled place of a mode that shows best what it is: words before spans, with a note."""
    if not any(
        verdict.mode == mode
        and verdict.source in _SETTLED
        and verdict.value is VerdictValue.PRESENT
        for verdict in gold.verdicts
    ):
        return None
    places = [
        label
        for label in gold.labels
        if label.mode == mode and label.source in _SETTLED and not label.target.is_whole
    ]
    return min(
        places,
        key=lambda label: (label.target.quote is None, not label.notes),
        default=None,
    )


def _seed(*groups: Sequence[_Candidate]) -> bytes:
    """A hash of all that there is to choose from."""
    said = sorted(found.choice.words() for group in groups for found in group)
    return hashlib.sha256("\n".join(said).encode("utf-8", "replace")).digest()


def _spread(candidates: Sequence[_Candidate], seed: bytes) -> Iterator[_Candidate]:
    """All candidates in a drawn order: a mode comes again only after all others, as do traces."""
    left = sorted(candidates, key=lambda found: _draw(seed, found.choice))
    modes: dict[str, int] = {}
    traces: dict[str, int] = {}
    while left:
        found = min(
            left,
            key=lambda c: (modes.get(c.choice.mode, 0), traces.get(c.choice.trace_id, 0)),
        )
        left.remove(found)
        modes[found.choice.mode] = modes.get(found.choice.mode, 0) + 1
        traces[found.choice.trace_id] = traces.get(found.choice.trace_id, 0) + 1
        yield found


def _draw(seed: bytes, choice: Choice) -> bytes:
    return hashlib.sha256(seed + choice.words().encode("utf-8", "replace")).digest()


def _why_none(candidates: Sequence[_Candidate]) -> str:
    if not candidates:
        return (
            "the settled gold names no places in the traces, only whole traces; examples need "
            "labels on spans or quotes"
        )
    traces = len({found.choice.trace_id for found in candidates})
    return (
        f"there is settled gold of {traces} traces, but none of their files is where it was last "
        "seen; run this where the traces lie, or open them once with mast-tui"
    )


def _excerpt_of(trace: Trace, found: _Candidate, most_chars: int) -> tuple[str, str] | None:
    """The spans of a place as text, and words of them that can be quoted.

    Long texts are shortened around the quote, long ranges to their ends. None where the spans are
    not in the trace, or hold no text.
    """
    target = found.target
    if target.first is None or target.last is None:
        return None
    first, last = trace.index_of(target.first), trace.index_of(target.last)
    if first is None or last is None:
        return None
    first, last = min(first, last), max(first, last)
    indices = list(range(first, last + 1))
    if len(indices) > MOST_SPANS:
        indices = [*indices[: MOST_SPANS - 1], last]
    quote = target.quote or found.quote
    share = most_chars // len(indices)
    parts: list[str] = []
    words = None
    before = first - 1
    for index in indices:
        if index != before + 1:
            parts.append(f"[… {index - before - 1} steps left out …]")
        text, shown_quote = _cut(trace.text(index), share, quote, target.char_start)
        words = words or shown_quote
        parts.append(f"{_heading(trace.span(index))}\n{text}")
        before = index
    words = words or quote or _first_words(trace.text(first))
    shown = "\n\n".join(parts)
    return (shown, words) if words and words in shown else None


def _heading(span: Span) -> str:
    named = [span.kind.value.replace("_", " "), one_line(span.agent, 40)]
    if span.name:
        named.append(one_line(span.name, 40))
    if span.status.value == "error":
        named.append("error")
    return f"({' · '.join(part for part in named if part)})"


def _cut(text: str, room: int, quote: str | None, start: int | None) -> tuple[str, str | None]:
    """The text within its room, and the quote as it is shown where it stands here."""
    at = -1
    if quote:
        at = start if start is not None and text.startswith(quote, start) else text.find(quote)
    shown = None if at < 0 or quote is None else quote[:MOST_QUOTE]
    if len(text) <= room:
        return text, shown
    middle = 0 if shown is None else at + len(shown) // 2
    begin = max(0, min(middle - room // 2, len(text) - room))
    end = begin + room
    before = _LEFT_OUT if begin else ""
    after = _LEFT_OUT if end < len(text) else ""
    return f"{before}{text[begin:end]}{after}", shown


def _first_words(text: str) -> str:
    """The first line that says something, where nobody marked words."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line[:MOST_QUOTE].rstrip()
