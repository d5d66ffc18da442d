"""Examples for the prompt, from gold or from the sample traces, with near misses of modes."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter, defaultdict
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
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.library import read_file, read_fully, samples_folder
from mast_tui.traces.model import Span, Trace

EXAMPLES: Final = 4
"""The default number of examples."""

ABSENT_IN: Final = 4
"""One of this number of examples shows an absent mode."""

MOST_CHARS: Final = 1_800
"""The approximate length of an excerpt in characters."""

MOST_SPANS: Final = 4

BUILT_IN_CHARS: Final = 700
"""The same for a built-in example."""

MOST_QUOTE: Final = 160

_OMISSION_MARK: Final = "[…]"

_SETTLED: Final = (Resolution.UNANIMOUS, Resolution.ADJUDICATED)
_PARAMETER_NAME: Final = "example"

TraceLookup = Callable[[str], Trace | None]
"""A function that returns a trace by its id, read to its end, or None if its file is missing."""


class FewShotError(MastError):
    """An error without examples; the message says why, and how to get some."""


@dataclass(frozen=True, slots=True)
class GoldCase:
    """The gold of one trace, and the work of each annotator in ``sides``."""

    trace_id: str
    gold: GoldTrace
    sides: tuple[TraceWork, ...] = ()


@dataclass(frozen=True, slots=True)
class ExampleChoice:
    """The subject of an example: a present or absent mode in a trace."""

    mode: str
    verdict: VerdictValue
    trace_id: str

    def serialize(self) -> str:
        """Return the choice as a text for the settings of a run."""
        return f"{self.mode} {self.verdict} {self.trace_id}"

    @classmethod
    def from_example(cls, example: Example) -> ExampleChoice:
        """Return the choice that an example was made from."""
        return cls(example.mode, example.verdict, example.trace_id)

    @classmethod
    def parse(cls, text: str) -> ExampleChoice:
        """Read the text of a choice.

        Raises:
            ValueError: The text is no choice.
        """
        mode, verdict, trace_id = text.split(" ", 2)
        return cls(mode, VerdictValue(verdict), trace_id)


@dataclass(frozen=True, slots=True)
class ExampleSource:
    """A label that may become an example; ``quote`` is used if the target has no quote."""

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
) -> tuple[Example, ...]:
    """Choose examples from settled gold; the same gold gives the same examples.

    The examples are distributed over modes and traces. One in four is a near miss: an absent mode
    that may seem present.

    Args:
        cases: The gold of the traces.
        taxonomy: The taxonomy of the gold.
        find_trace: Returns a trace by its id.
        redaction: The redaction of the examples.
        count: The number of examples.
        may_use: Checks whether a prompt may use a trace.

    Raises:
        FewShotError: There is no settled gold with a span range, or all files are missing.
        OSError: The file of a trace could not be read.
    """
    settled_cases = [case for case in cases if _is_settled(case.gold)]
    if not settled_cases:
        raise FewShotError(
            "there is no settled gold to take examples from yet: verdicts count on which two "
            "people agree, or that were adjudicated"
        )
    allowed_cases = [case for case in settled_cases if may_use(case.trace_id)]
    if not allowed_cases:
        raise FewShotError("all traces with settled gold are set aside; no prompt may use them")
    present = [source for case in allowed_cases for source in _present_sources(case)]
    near_misses = [
        source for case in allowed_cases for source in _near_miss_sources(case, taxonomy)
    ]
    seed = _candidate_hash(present, near_misses)
    near_miss_count = min(len(near_misses), count // ABSENT_IN) if present else count
    maker = ExampleMaker(find_trace, redaction)
    examples = maker.make(_balanced_order(present, seed), count - near_miss_count)
    examples += maker.make(_balanced_order(near_misses, seed), count - len(examples))
    # Some near misses may not have become examples.
    examples += maker.make(_balanced_order(present, seed), count - len(examples))
    if not examples:
        raise FewShotError(_no_examples_message(present or near_misses))
    return tuple(examples)


def built_in_examples(taxonomy: Taxonomy, redaction: Redaction) -> tuple[Example, ...]:
    """Make an example and a near miss of each mode from the sample traces.

    Args:
        taxonomy: The taxonomy of the modes.
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
    sources_by_verdict = _sample_sources(folder, traces)
    maker = ExampleMaker(traces.get, redaction, BUILT_IN_CHARS)
    example_count_by_trace: Counter[str] = Counter()
    examples: list[Example] = []
    for mode, verdict in itertools.product(taxonomy.modes, _SAMPLE_VERDICTS.values()):
        # Prefer single spans, quotes, and traces that were used least.
        candidates = sorted(
            sources_by_verdict.get((mode.slug, verdict), []),
            key=lambda candidate: (
                candidate.target.first != candidate.target.last,
                candidate.quote is None,
                example_count_by_trace[candidate.choice.trace_id],
            ),
        )
        mode_examples = maker.make(candidates, 1)
        example_count_by_trace.update(example.trace_id for example in mode_examples)
        examples += mode_examples
    if not examples:
        raise FewShotError(
            f"the built-in examples are of MAST, and {taxonomy.ref} has none of its modes; use "
            "--few-shot gold for examples from your own gold"
        )
    return tuple(examples)


_SAMPLE_VERDICTS: Final = {
    "planted.jsonl": VerdictValue.PRESENT,
    "clean.jsonl": VerdictValue.ABSENT,
}
"""The verdict of all labels in a list beside the samples, by file name."""


def _sample_sources(
    folder: Path, traces: dict[str, Trace]
) -> dict[tuple[str, VerdictValue], list[ExampleSource]]:
    """Read the labels of the samples, by mode and verdict, and add their traces to ``traces``."""
    sources: dict[tuple[str, VerdictValue], list[ExampleSource]] = defaultdict(list)
    for name, verdict in _SAMPLE_VERDICTS.items():
        for line in (folder / name).read_bytes().splitlines():
            row = orjson.loads(line)
            trace = _sample_trace(folder / row["trace"], row["record"], traces)
            choice = ExampleChoice(row["slug"], verdict, trace.identity.trace_id)
            target = Target(row["first"], row["last"])
            sources[row["slug"], verdict].append(
                ExampleSource(choice, target, row["why"], row["quote"])
            )
    return sources


def _sample_trace(path: Path, record: int | None, cache: dict[str, Trace]) -> Trace:
    """Return a sample trace by path and record number; ``cache`` keeps all traces by id."""
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
) -> tuple[Example, ...] | None:
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
    case_by_trace = {case.trace_id: case for case in cases}
    maker = ExampleMaker(find_trace, redaction)
    repeated_examples: list[Example] = []
    for choice in choices:
        case = case_by_trace.get(choice.trace_id)
        if case is None:
            return None
        candidates = [*_present_sources(case), *_near_miss_sources(case, taxonomy)]
        matching = (candidate for candidate in candidates if candidate.choice == choice)
        examples = maker.make(matching, 1)
        if not examples:
            return None
        repeated_examples += examples
    return tuple(repeated_examples)


def choice_parameters(examples: Iterable[Example]) -> tuple[tuple[str, str], ...]:
    """Return the settings, as names and values, that record the choices of examples."""
    return tuple(
        (f"{_PARAMETER_NAME} {number}", ExampleChoice.from_example(example).serialize())
        for number, example in enumerate(examples, 1)
    )


def recorded_choices(parameters: Iterable[tuple[str, str]]) -> tuple[ExampleChoice, ...]:
    """Return the choices of examples that settings record, in their order."""
    prefix = f"{_PARAMETER_NAME} "
    choice_by_number = {
        int(name.removeprefix(prefix)): ExampleChoice.parse(text)
        for name, text in parameters
        if name.startswith(prefix)
    }
    return tuple(choice_by_number[number] for number in sorted(choice_by_number))


class ExampleMaker:
    """A maker of examples that makes at most one for each mode, verdict and trace."""

    def __init__(
        self, find_trace: TraceLookup, redaction: Redaction, most_chars: int = MOST_CHARS
    ) -> None:
        self._find_trace = find_trace
        self._redaction = redaction
        self._most_chars = most_chars
        self._used_choices: set[ExampleChoice] = set()

    def make(self, candidates: Iterable[ExampleSource], count: int) -> list[Example]:
        """Make examples of the first unused candidates whose spans are available.

        Args:
            candidates: The candidates, in the order of preference.
            count: The most examples.
        """
        examples: list[Example] = []
        for candidate in candidates:
            if len(examples) >= count:
                break
            if candidate.choice in self._used_choices:
                continue
            example = self._make_example(candidate)
            if example is not None:
                self._used_choices.add(candidate.choice)
                examples.append(example)
        return examples

    def _make_example(self, candidate: ExampleSource) -> Example | None:
        """Return the redacted example of a candidate; None if its trace or spans are missing."""
        choice = candidate.choice
        trace = self._find_trace(choice.trace_id)
        excerpt = None if trace is None else _excerpt_and_quote(trace, candidate, self._most_chars)
        if excerpt is None:
            return None
        text, quote = excerpt
        is_present = choice.verdict is VerdictValue.PRESENT
        return Example(
            trace_id=choice.trace_id,
            mode=choice.mode,
            verdict=choice.verdict,
            excerpt=text,
            # Only a present verdict needs a quote as its proof.
            quote=quote if is_present else None,
            rationale=candidate.rationale,
        ).redacted(self._redaction)


def _is_settled(gold: GoldTrace) -> bool:
    return any(verdict.source in _SETTLED for verdict in gold.verdicts)


def _present_sources(case: GoldCase) -> Iterator[ExampleSource]:
    """Yield the best label of each present mode."""
    for verdict in case.gold.verdicts:
        if verdict.source not in _SETTLED or verdict.value is not VerdictValue.PRESENT:
            continue
        label = _best_label(case.gold, verdict.mode)
        if label is not None:
            note = next((note for _, note in label.notes if note.strip()), "")
            choice = ExampleChoice(verdict.mode, VerdictValue.PRESENT, case.trace_id)
            yield ExampleSource(choice, label.target, note or label.reason or verdict.reason)


def _near_miss_sources(case: GoldCase, taxonomy: Taxonomy) -> Iterator[ExampleSource]:
    """Yield a label for each near miss: an absent mode that may seem present.

    The label is a rejected label of that mode, or else the best label of a present mode that is
    easily confused with it.
    """
    for verdict in case.gold.verdicts:
        if verdict.source not in _SETTLED or verdict.value is not VerdictValue.ABSENT:
            continue
        choice = ExampleChoice(verdict.mode, VerdictValue.ABSENT, case.trace_id)
        rejected_labels = [
            label
            for side in case.sides
            for label in side.labels.values()
            if label.mode == verdict.mode and not label.target.is_whole
        ]
        if rejected_labels:
            reason = verdict.reason or "it looks like it, and after a second look it is not"
            first_label = min(rejected_labels, key=lambda label: label.id)
            yield ExampleSource(choice, first_label.target, reason)
            continue
        mode = taxonomy.mode(verdict.mode)
        for confusable in mode.confusable:
            label = _best_label(case.gold, confusable.slug)
            if label is not None:
                present_mode = taxonomy.mode(confusable.slug)
                rationale = f"this is {present_mode.code} {present_mode.name}: "
                rationale += confusable.difference
                yield ExampleSource(choice, label.target, rationale)
                break


def _best_label(gold: GoldTrace, mode: str) -> GoldLabel | None:
    """Return the settled label that shows a present mode best; None if there is none.

    Labels with a quote are preferred, then labels with a note.
    """
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
        labels, key=lambda label: (label.target.quote is None, not label.notes), default=None
    )


def _candidate_hash(*groups: Sequence[ExampleSource]) -> bytes:
    choices = sorted(candidate.choice.serialize() for group in groups for candidate in group)
    return hashlib.sha256("\n".join(choices).encode("utf-8", "replace")).digest()


def _balanced_order(candidates: Sequence[ExampleSource], seed: bytes) -> Iterator[ExampleSource]:
    """Yield candidates so that modes, and then traces, take turns.

    The seed decides on candidates of equal rank.
    """
    remaining = sorted(candidates, key=lambda candidate: _random_key(seed, candidate.choice))
    count_by_mode: Counter[str] = Counter()
    count_by_trace: Counter[str] = Counter()

    def use_counts(candidate: ExampleSource) -> tuple[int, int]:
        choice = candidate.choice
        return count_by_mode[choice.mode], count_by_trace[choice.trace_id]

    while remaining:
        candidate = min(remaining, key=use_counts)
        remaining.remove(candidate)
        count_by_mode[candidate.choice.mode] += 1
        count_by_trace[candidate.choice.trace_id] += 1
        yield candidate


def _random_key(seed: bytes, choice: ExampleChoice) -> bytes:
    return hashlib.sha256(seed + choice.serialize().encode("utf-8", "replace")).digest()


def _no_examples_message(candidates: Sequence[ExampleSource]) -> str:
    """Return the message that says why no candidate became an example."""
    if not candidates:
        return (
            "the settled gold has labels only on whole traces; examples need labels on spans "
            "or quotes"
        )
    trace_count = len({candidate.choice.trace_id for candidate in candidates})
    return (
        f"there is settled gold of {trace_count} traces, but none of their files was found; "
        "run this where the traces are, or open them once with mast-tui"
    )


def _excerpt_and_quote(
    trace: Trace, candidate: ExampleSource, most_chars: int
) -> tuple[str, str] | None:
    """Return an excerpt of the spans of a candidate, and the quote in it, or None.

    The excerpt of a long range has its first spans and the last one. Long texts are shortened
    around the quote.
    """
    target = candidate.target
    if target.first is None or target.last is None:
        return None
    first = trace.index_of(target.first)
    last = trace.index_of(target.last)
    if first is None or last is None:
        return None
    first, last = sorted((first, last))
    indices = list(range(first, last + 1))
    if len(indices) > MOST_SPANS:
        indices = [*indices[: MOST_SPANS - 1], last]
    quote = target.quote or candidate.quote
    span_chars = most_chars // len(indices)
    parts: list[str] = []
    excerpt_quote = None
    previous_index = first - 1
    for index in indices:
        if index != previous_index + 1:
            parts.append(f"[… {index - previous_index - 1} steps left out …]")
        text, shortened_quote = _shortened_text(
            trace.text(index), span_chars, quote, target.char_start
        )
        excerpt_quote = excerpt_quote or shortened_quote
        parts.append(f"{_span_heading(trace.span(index))}\n{text}")
        previous_index = index
    excerpt_quote = excerpt_quote or quote or _first_line(trace.text(first))
    excerpt = "\n\n".join(parts)
    return (excerpt, excerpt_quote) if excerpt_quote and excerpt_quote in excerpt else None


def _span_heading(span: Span) -> str:
    """Return the kind, agent, tool and error of a span in parentheses."""
    parts = [span.kind.value.replace("_", " "), one_line(span.agent, 40)]
    if span.name:
        parts.append(one_line(span.name, 40))
    if span.status.value == "error":
        parts.append("error")
    return f"({' · '.join(part for part in parts if part)})"


def _shortened_text(
    text: str, room: int, quote: str | None, start: int | None
) -> tuple[str, str | None]:
    """Shorten a text around a quote, or to its beginning without a quote.

    Returns:
        The text, and the beginning of the quote; None if the text does not hold the quote.
    """
    offset = -1
    if quote:
        has_known_offset = start is not None and text.startswith(quote, start)
        offset = start if start is not None and has_known_offset else text.find(quote)
    shown_quote = None if offset < 0 or quote is None else quote[:MOST_QUOTE]
    if len(text) <= room:
        return text, shown_quote
    middle = 0 if shown_quote is None else offset + len(shown_quote) // 2
    shown_start = max(0, min(middle - room // 2, len(text) - room))
    shown_end = shown_start + room
    prefix = _OMISSION_MARK if shown_start else ""
    suffix = _OMISSION_MARK if shown_end < len(text) else ""
    return f"{prefix}{text[shown_start:shown_end]}{suffix}", shown_quote


def _first_line(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line[:MOST_QUOTE].rstrip()
