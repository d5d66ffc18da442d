"""Examples for the prompt, from gold or from the samples: each mode, and near misses of it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from mast_tui.errors import MastError
from mast_tui.gold import GoldLabel, GoldTrace, Resolution
from mast_tui.judges.llm.prompt.prompt import Example
from mast_tui.labels import Target, TraceWork, VerdictValue
from mast_tui.redaction.engine import Redaction
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.traces.library import read_file, read_fully, samples_folder
from mast_tui.traces.model import Span, Trace
from mast_tui.workspace import TraceRecord, Workspace

EXAMPLES: Final = 4
"""The default number of examples."""

ABSENT_IN: Final = 4
"""One example in so many shows a mode that is absent."""

MOST_CHARS: Final = 1_800
"""The approximate length of an excerpt in characters: a few hundred tokens."""

MOST_SPANS: Final = 4

BUILT_IN_CHARS: Final = 700
"""The same for a built-in example, of which each mode has two."""

MOST_QUOTE: Final = 160

_LEFT_OUT: Final = "[…]"

_SETTLED: Final = (Resolution.UNANIMOUS, Resolution.ADJUDICATED)
_NAME: Final = "example"

TraceLookup = Callable[[str], Trace | None]
"""Returns the trace with an id, read to its end, or None if its file is missing."""


class FewShotError(MastError):
    """There are no examples; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class GoldCase:
    """The gold of one trace, and the work of its annotators."""

    trace_id: str
    gold: GoldTrace
    sides: tuple[TraceWork, ...] = ()


@dataclass(frozen=True, slots=True)
class ExampleChoice:
    """The subject of an example: a mode that is present or absent in a trace."""

    mode: str
    verdict: VerdictValue
    trace_id: str

    def serialize(self) -> str:
        """Return the choice as the settings of a run record it."""
        return f"{self.mode} {self.verdict} {self.trace_id}"

    @classmethod
    def parse(cls, text: str) -> ExampleChoice:
        """Read a recorded choice.

        Raises:
            ValueError: The text is no recorded choice.
        """
        mode, verdict, trace_id = text.split(" ", 2)
        return cls(mode, VerdictValue(verdict), trace_id)


ChosenExamples = tuple[tuple[ExampleChoice, Example], ...]
"""Examples with their choices."""


@dataclass(frozen=True, slots=True)
class ExampleSource:
    """A place that may become an example; ``quote`` is for a range of spans without a quote."""

    choice: ExampleChoice
    target: Target
    rationale: str
    quote: str | None = None


def choose_examples(
    cases: Iterable[GoldCase],
    taxonomy: Taxonomy,
    find_trace: TraceLookup,
    redaction: Redaction,
    *,
    count: int = EXAMPLES,
    may_use: Callable[[str], bool] = lambda _: True,
) -> ChosenExamples:
    """Choose examples from settled gold; the same gold gives the same examples.

    They are spread over modes and traces. One in four is a near miss: a mode that is absent where
    it may seem present.

    Args:
        cases: The gold of the traces.
        taxonomy: The taxonomy of the gold.
        find_trace: Returns a trace by its id.
        redaction: The redaction of the examples.
        count: The number of examples.
        may_use: Tells whether a trace may be used; others are not read.

    Raises:
        FewShotError: There is no settled gold with a span range, or the files of all its traces
            are missing.
        OSError: The file of a trace could not be read.
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
    present = [candidate for case in allowed for candidate in _present(case)]
    near = [candidate for case in allowed for candidate in _near_misses(case, taxonomy)]
    seed = _seed(present, near)
    near_count = min(len(near), count // ABSENT_IN) if present else count
    maker = ExampleMaker(find_trace, redaction)
    chosen = maker.make(_spread(present, seed), count - near_count)
    chosen += maker.make(_spread(near, seed), count - len(chosen))
    if len(chosen) < count:
        chosen += maker.make(_spread(present, seed), count - len(chosen))
    if not chosen:
        raise FewShotError(_reason_for_none(present or near))
    return tuple(chosen)


def built_in_examples(taxonomy: Taxonomy, redaction: Redaction) -> tuple[Example, ...]:
    """Make an example and a near miss of each mode from the sample traces.

    The files ``planted.jsonl`` and ``clean.jsonl`` beside the samples list them.

    Args:
        taxonomy: The taxonomy whose modes have examples.
        redaction: The redaction of the examples.

    Raises:
        FewShotError: The samples are missing, or have no mode of this taxonomy.
        OSError: A file of the samples cannot be read.
    """
    try:
        folder = samples_folder()
    except FileNotFoundError as error:
        raise FewShotError(str(error)) from error
    traces: dict[str, Trace] = {}
    listed: dict[tuple[str, VerdictValue], list[ExampleSource]] = {}
    for name, verdict in (
        ("planted.jsonl", VerdictValue.PRESENT),
        ("clean.jsonl", VerdictValue.ABSENT),
    ):
        for line in (folder / name).read_bytes().splitlines():
            row = orjson.loads(line)
            trace = _sample(folder / row["trace"], row["record"], traces)
            choice = ExampleChoice(row["slug"], verdict, trace.identity.trace_id)
            target = Target(row["first"], row["last"])
            listed.setdefault((row["slug"], verdict), []).append(
                ExampleSource(choice, target, row["why"], row["quote"])
            )
    maker = ExampleMaker(traces.get, redaction, BUILT_IN_CHARS)
    used: Counter[str] = Counter()
    examples = []
    for mode in taxonomy.modes:
        for verdict in (VerdictValue.PRESENT, VerdictValue.ABSENT):
            candidates = listed.get((mode.slug, verdict), [])
            # Prefer single spans, quotes, and traces that were used least.
            candidates.sort(
                key=lambda candidate: (
                    candidate.target.first != candidate.target.last,
                    candidate.quote is None,
                    used[candidate.choice.trace_id],
                )
            )
            for choice, example in maker.make(candidates, 1):
                used[choice.trace_id] += 1
                examples.append(example)
    if not examples:
        raise FewShotError(
            f"the built-in examples are of MAST, and {taxonomy.ref} has none of its modes; "
            "--few-shot gold takes them from your own gold"
        )
    return tuple(examples)


def _sample(path: Path, record: int | None, cache: dict[str, Trace]) -> Trace:
    """Return a sample trace; the traces of a file are read once, into ``cache``."""
    if all(trace.path != path for trace in cache.values()):
        for trace in read_file(path, named=True).traces:
            read_fully(trace)
            cache[trace.identity.trace_id] = trace
    return next(trace for trace in cache.values() if trace.path == path and trace.record == record)


def repeat_examples(
    choices: Sequence[ExampleChoice],
    cases: Iterable[GoldCase],
    taxonomy: Taxonomy,
    find_trace: TraceLookup,
    redaction: Redaction,
) -> ChosenExamples | None:
    """Make the examples of recorded choices again.

    Args:
        choices: The recorded choices.
        cases: The gold of the traces.
        taxonomy: The taxonomy of the gold.
        find_trace: Returns a trace by its id.
        redaction: The redaction of the examples.

    Returns:
        The examples, or None if the gold has changed.
    """
    by_trace = {case.trace_id: case for case in cases}
    maker = ExampleMaker(find_trace, redaction)
    chosen: list[tuple[ExampleChoice, Example]] = []
    for choice in choices:
        case = by_trace.get(choice.trace_id)
        if case is None:
            return None
        candidates = [*_present(case), *_near_misses(case, taxonomy)]
        examples = maker.make((each for each in candidates if each.choice == choice), 1)
        if not examples:
            return None
        chosen += examples
    return tuple(chosen)


def choice_parameters(chosen: ChosenExamples) -> tuple[tuple[str, str], ...]:
    """Return the names and values by which the settings of a run record the choices."""
    return tuple(
        (f"{_NAME} {number}", choice.serialize()) for number, (choice, _) in enumerate(chosen, 1)
    )


def recorded_choices(parameters: Iterable[tuple[str, str]]) -> tuple[ExampleChoice, ...]:
    """Return the choices in the settings of a run, in their order."""
    numbered = [
        (int(name.removeprefix(f"{_NAME} ")), ExampleChoice.parse(text))
        for name, text in parameters
        if name.startswith(f"{_NAME} ")
    ]
    return tuple(choice for _, choice in sorted(numbered, key=lambda pair: pair[0]))


def traces_in_files(workspace: Workspace) -> TraceLookup:
    """Return a function that reads a trace of the workspace from its last known file."""
    records = {record.trace_id: record for record in workspace.traces()}

    def find_trace(trace_id: str) -> Trace | None:
        record = records.get(trace_id)
        if record is None or record.path is None or not record.path.exists():
            return None
        for trace in read_file(record.path, named=True).traces:
            stored = workspace.find_trace(TraceRecord.from_trace(trace))
            if stored is not None and stored.trace_id == trace_id:
                read_fully(trace)
                return trace
        return None

    return find_trace


class ExampleMaker:
    """A maker of examples from candidates, at most one for each choice."""

    def __init__(
        self, find_trace: TraceLookup, redaction: Redaction, most_chars: int = MOST_CHARS
    ) -> None:
        self._find_trace = find_trace
        self._redaction = redaction
        self._most_chars = most_chars
        self._used: set[ExampleChoice] = set()

    def make(
        self, candidates: Iterable[ExampleSource], count: int
    ) -> list[tuple[ExampleChoice, Example]]:
        """Make examples of the first candidates whose spans are available.

        Args:
            candidates: The candidates in their order.
            count: The most examples.
        """
        chosen: list[tuple[ExampleChoice, Example]] = []
        for candidate in candidates:
            if len(chosen) >= count:
                break
            if candidate.choice in self._used:
                continue
            example = self._example(candidate)
            if example is not None:
                self._used.add(candidate.choice)
                chosen.append((candidate.choice, example))
        return chosen

    def _example(self, candidate: ExampleSource) -> Example | None:
        choice = candidate.choice
        trace = self._find_trace(choice.trace_id)
        excerpt = None if trace is None else _excerpt_of(trace, candidate, self._most_chars)
        if excerpt is None:
            return None
        text, quote = excerpt
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


def _present(case: GoldCase) -> Iterator[ExampleSource]:
    """Yield the modes that are present, each with its best label."""
    for verdict in case.gold.verdicts:
        if verdict.source not in _SETTLED or verdict.value is not VerdictValue.PRESENT:
            continue
        label = _best_label(case.gold, verdict.mode)
        if label is not None:
            note = next((note for _, note in label.notes if note.strip()), "")
            choice = ExampleChoice(verdict.mode, VerdictValue.PRESENT, case.trace_id)
            yield ExampleSource(choice, label.target, note or label.reason or verdict.reason)


def _near_misses(case: GoldCase, taxonomy: Taxonomy) -> Iterator[ExampleSource]:
    """Yield absent modes that an annotator has marked, or with which a present one is confused."""
    for verdict in case.gold.verdicts:
        if verdict.source not in _SETTLED or verdict.value is not VerdictValue.ABSENT:
            continue
        choice = ExampleChoice(verdict.mode, VerdictValue.ABSENT, case.trace_id)
        marked = [
            label
            for side in case.sides
            for label in side.labels.values()
            if label.mode == verdict.mode and not label.target.is_whole
        ]
        if marked:
            reason = verdict.reason or "it looks like it, and after a second look it is not"
            yield ExampleSource(choice, min(marked, key=lambda label: label.id).target, reason)
            continue
        mode = taxonomy.mode(verdict.mode)
        for like in mode.confusable:
            label = _best_label(case.gold, like.slug)
            if label is not None:
                yield ExampleSource(choice, label.target, _instead(taxonomy, like.slug, mode))
                break


def _instead(taxonomy: Taxonomy, slug: str, mode: Mode) -> str:
    other = taxonomy.mode(slug)
    difference = next(like.difference for like in mode.confusable if like.slug == slug)
    return f"this is {other.code} {other.name}: {difference}"


def _best_label(gold: GoldTrace, mode: str) -> GoldLabel | None:
    """Return the settled label of a mode that shows it best: with a quote, then with a note."""
    if not any(
        verdict.mode == mode
        and verdict.source in _SETTLED
        and verdict.value is VerdictValue.PRESENT
        for verdict in gold.verdicts
    ):
        return None
    labels = [
        label
        for label in gold.labels
        if label.mode == mode and label.source in _SETTLED and not label.target.is_whole
    ]
    return min(
        labels,
        key=lambda label: (label.target.quote is None, not label.notes),
        default=None,
    )


def _seed(*groups: Sequence[ExampleSource]) -> bytes:
    """Return a hash of all candidates."""
    choices = sorted(candidate.choice.serialize() for group in groups for candidate in group)
    return hashlib.sha256("\n".join(choices).encode("utf-8", "replace")).digest()


def _spread(candidates: Sequence[ExampleSource], seed: bytes) -> Iterator[ExampleSource]:
    """Yield all candidates in a random order, the least used modes first, then traces."""
    remaining = sorted(candidates, key=lambda candidate: _draw(seed, candidate.choice))
    modes: Counter[str] = Counter()
    traces: Counter[str] = Counter()
    while remaining:
        candidate = min(
            remaining, key=lambda each: (modes[each.choice.mode], traces[each.choice.trace_id])
        )
        remaining.remove(candidate)
        modes[candidate.choice.mode] += 1
        traces[candidate.choice.trace_id] += 1
        yield candidate


def _draw(seed: bytes, choice: ExampleChoice) -> bytes:
    return hashlib.sha256(seed + choice.serialize().encode("utf-8", "replace")).digest()


def _reason_for_none(candidates: Sequence[ExampleSource]) -> str:
    if not candidates:
        return (
            "the settled gold names no places in the traces, only whole traces; examples need "
            "labels on spans or quotes"
        )
    traces = len({candidate.choice.trace_id for candidate in candidates})
    return (
        f"there is settled gold of {traces} traces, but none of their files is where it was last "
        "seen; run this where the traces lie, or open them once with mast-tui"
    )


def _excerpt_of(trace: Trace, candidate: ExampleSource, most_chars: int) -> tuple[str, str] | None:
    """Write the spans of a candidate as text.

    Long texts are shortened around the quote, long ranges to their ends.

    Returns:
        The text and the quote in it, or None if the spans are missing or have no text.
    """
    target = candidate.target
    if target.first is None or target.last is None:
        return None
    first, last = trace.index_of(target.first), trace.index_of(target.last)
    if first is None or last is None:
        return None
    first, last = min(first, last), max(first, last)
    indices = list(range(first, last + 1))
    if len(indices) > MOST_SPANS:
        indices = [*indices[: MOST_SPANS - 1], last]
    quote = target.quote or candidate.quote
    share = most_chars // len(indices)
    parts: list[str] = []
    excerpt_quote = None
    previous = first - 1
    for index in indices:
        if index != previous + 1:
            parts.append(f"[… {index - previous - 1} steps left out …]")
        text, shortened_quote = _shorten(trace.text(index), share, quote, target.char_start)
        excerpt_quote = excerpt_quote or shortened_quote
        parts.append(f"{_heading(trace.span(index))}\n{text}")
        previous = index
    excerpt_quote = excerpt_quote or quote or _first_line(trace.text(first))
    excerpt = "\n\n".join(parts)
    return (excerpt, excerpt_quote) if excerpt_quote and excerpt_quote in excerpt else None


def _heading(span: Span) -> str:
    parts = [span.kind.value.replace("_", " "), one_line(span.agent, 40)]
    if span.name:
        parts.append(one_line(span.name, 40))
    if span.status.value == "error":
        parts.append("error")
    return f"({' · '.join(part for part in parts if part)})"


def _shorten(text: str, room: int, quote: str | None, start: int | None) -> tuple[str, str | None]:
    """Shorten a text around the quote; return it with the quote, cut to its most characters."""
    offset = -1
    if quote:
        is_at_start = start is not None and text.startswith(quote, start)
        offset = start if start is not None and is_at_start else text.find(quote)
    shown_quote = None if offset < 0 or quote is None else quote[:MOST_QUOTE]
    if len(text) <= room:
        return text, shown_quote
    middle = 0 if shown_quote is None else offset + len(shown_quote) // 2
    begin = max(0, min(middle - room // 2, len(text) - room))
    end = begin + room
    prefix = _LEFT_OUT if begin else ""
    suffix = _LEFT_OUT if end < len(text) else ""
    return f"{prefix}{text[begin:end]}{suffix}", shown_quote


def _first_line(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line[:MOST_QUOTE].rstrip()
