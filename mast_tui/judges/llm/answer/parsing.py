"""The answers of a model: their JSON schema, and the parser."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple, Protocol

import json_repair
import orjson

from mast_tui.judges.llm.request import AskError, Window
from mast_tui.labels import Evidence, Finding, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.traces.search.pattern import encodable_text

QUOTE_CHARS: Final = 10_000
"""The most code points of a quote; a longer quote is cut."""

RATIONALE_CHARS: Final = 4_000
"""The most code points of a rationale; a longer rationale is cut."""

ASKED_FINDINGS: Final = 5
"""The most findings of one mode that the schema allows."""

SMALL_ANSWER: Final = 2_000
"""The token limit of an answer below which the schema bounds the length of each text."""

MOST_FINDINGS: Final = 20
"""The most findings of a mode that are read from an answer. Each costs a search in the trace."""

MOST_ENTRIES: Final = 1_000
"""The most entries for modes that are read from an answer."""

_FRAME_TOKENS: Final = 90
"""The approximate tokens of names, numbers and indents in the answer on one mode."""

_UNKNOWN_CONFIDENCE: Final = 0.5
"""The confidence of a finding without a readable confidence."""

_TEXTS_OF_MODE: Final = 3
"""The number of texts in the answer on one mode: the notes, and a finding's rationale and quote."""

_LEAST_CHARS: Final = 30
"""The fewest characters of a useful text. With less room, the schema has no bounds."""

_NUMBER_PATTERN: Final = re.compile(r"\s*(?:spans?\s*)?#?\s*(\d{1,12})(?:\.0+)?\s*", re.IGNORECASE)
_RANGE_PATTERN: Final = re.compile(r"\s*#?(\d{1,12})\s*(?:-|–|to|\.\.)\s*#?(\d{1,12})\s*")
_CONFIDENCE_PATTERN: Final = re.compile(r"\s*(\d{1,6}(?:\.\d{1,20})?|\.\d{1,20})\s*(%?)\s*")
_MODES_FIELDS: Final = ("modes", "failure_modes")
_VERDICT_FIELDS: Final = ("verdict", "present", "answer")
_QUOTE_FIELDS: Final = ("quote", "evidence")
_RATIONALE_FIELDS: Final = ("rationale", "reason", "explanation")
CONFIDENCE_FIELDS: Final = ("confidence", "score", "probability", "certainty", "likelihood")
_FINDINGS_FIELDS: Final = ("findings", "instances", "occurrences")
_SPANS_FIELDS: Final = ("spans", "span", "range", "steps", "step", "number")
"""The field names that models use; the schema has the first."""

Report = Callable[[str], object]
"""A function that records a problem of the answer, as a sentence."""

_VERDICTS_BY_WORD: Final = {
    **dict.fromkeys(("present", "yes", "true", "detected", "holds", "met"), VerdictValue.PRESENT),
    **dict.fromkeys(
        ("absent", "no", "false", "not present", "not detected", "fails", "not met"),
        VerdictValue.ABSENT,
    ),
    **dict.fromkeys(("unsure", "uncertain", "unclear", "unknown", "maybe"), VerdictValue.UNSURE),
}

_VERDICT_NAMES: Final = tuple(value.value for value in VerdictValue)
_VERDICT_ORDER: Final = (VerdictValue.ABSENT, VerdictValue.UNSURE, VerdictValue.PRESENT)


class NumberedSpans(Protocol):
    """The spans of a trace by the numbers with which they were sent."""

    def index_of(self, number: int) -> int | None:
        """Return the index of the span with a number, or None."""

    def key(self, index: int) -> str:
        """Return the key of a span in the trace."""

    def with_timeline_numbers(self, text: str) -> str:
        """Replace the sent numbers of spans in a text by those of the timeline."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a model on one window.

    Attributes:
        verdicts: The verdicts by slug. A mode is present if and only if it has a finding.
        findings: The findings, with the quotes of the model, without offsets. Their ranges name
            existing spans or no span.
        remarks: Sentences on problems of the answer.
    """

    verdicts: Mapping[str, VerdictValue]
    findings: tuple[Finding, ...]
    remarks: tuple[str, ...]


def answer_schema(codes: Sequence[str], *, tokens: int) -> dict[str, object]:
    """Make the JSON schema of an answer, in the strict form of structured outputs.

    All properties are required, and models write them in this order. So the evidence precedes the
    verdict, and no mode is left out.

    In a short answer, the schema bounds the findings and the length of each text, because small
    models write long texts. Some vendors refuse ``maxLength``, so a longer answer has no bounds.

    Args:
        codes: The codes of the modes.
        tokens: The token limit of the answer.
    """
    text_chars = (tokens - _FRAME_TOKENS * len(codes)) // (_TEXTS_OF_MODE * len(codes))
    is_bounded = tokens < SMALL_ANSWER and text_chars >= _LEAST_CHARS
    bound: dict[str, object] = {"maxLength": text_chars} if is_bounded else {}
    finding = object_schema(
        rationale={"type": "string", **bound},
        quote={"type": ["string", "null"], **bound},
        first={"type": ["integer", "null"]},
        last={"type": ["integer", "null"]},
        confidence={"type": "number"},
        decisive={"type": ["boolean", "null"]},
    )
    max_findings = 1 if is_bounded else ASKED_FINDINGS
    mode = object_schema(
        notes={"type": "string", **bound},
        findings={"type": "array", "items": finding, "maxItems": max_findings},
        verdict={"type": "string", "enum": list(_VERDICT_NAMES)},
    )
    mode_reference: dict[str, object] = {"$ref": "#/$defs/mode"}
    modes = object_schema(**dict.fromkeys(codes, mode_reference))
    return {
        **object_schema(modes=modes),
        "$defs": {"mode": mode},  # once, as some servers count the schema for every request
    }


def object_schema(**properties: dict[str, object]) -> dict[str, object]:
    """Make the schema of an object; all properties are required, in their order."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def parse_answer(text: str, taxonomy: Taxonomy, window: Window, view: NumberedSpans) -> Answer:
    """Read the answer of a model on a window.

    A field in another form than the schema's is read if it has only one possible meaning. A remark
    then notes the problem.

    Args:
        text: The answer, with any text around its JSON.
        taxonomy: The taxonomy of the modes.
        window: The window of the request.
        view: The trace as it was sent.

    Raises:
        Malformed: The text holds no answer; the message says why.
    """
    reader = _Reader(taxonomy, window, view)
    parsed = find_object(text, reader.is_answer)
    return reader.read(parsed.value, repaired=parsed.repaired)


def notes_by_mode(text: str, taxonomy: Taxonomy) -> dict[str, str]:
    """Return the notes on each mode in an answer, by slug.

    Args:
        text: The answer, with any text around its JSON.
        taxonomy: The taxonomy of the modes.

    Raises:
        Malformed: The text holds no answer.
    """
    answer = find_object(text, lambda value: _mode_entries(value, taxonomy) is not None).value
    notes = {}
    for name, entry in _mode_entries(answer, taxonomy) or ():
        mode = find_mode(taxonomy, name)
        if mode is not None and isinstance(entry, Mapping):
            notes[mode.slug] = as_text(entry.get("notes"))
    return {slug: mode_notes for slug, mode_notes in notes.items() if mode_notes}


def _mode_entries(
    value: Mapping[str, object], taxonomy: Taxonomy
) -> list[tuple[object, object]] | None:
    """Return pairs of a mode's name and its entry, or None if the object is no answer.

    The modes may be a list or an object in a field, or the fields of the object itself.
    """
    value = _object_with_modes(value)
    modes = first_of(value, _MODES_FIELDS)
    if isinstance(modes, list):
        return [(_mode_name(entry), entry) for entry in modes[:MOST_ENTRIES]]
    if isinstance(modes, dict):
        return list(islice(modes.items(), MOST_ENTRIES))
    if modes is None:
        entries = list(islice(value.items(), MOST_ENTRIES))
        if any(find_mode(taxonomy, name) for name, _ in entries):
            # Some answers have a digest of the trace beside the modes.
            return [(name, entry) for name, entry in entries if name != "digest"]
    return None


class _Reader:
    """The parser of one answer."""

    def __init__(self, taxonomy: Taxonomy, window: Window, view: NumberedSpans) -> None:
        self._taxonomy = taxonomy
        self._window = window
        self._view = view
        self._remarks: dict[str, None] = {}
        """The distinct remarks, in their order."""
        self._verdicts: dict[str, VerdictValue] = {}
        # Of several findings with the same mode, range and evidence, the most confident counts.
        self._findings_by_key: dict[tuple[object, ...], Finding] = {}
        self._finding_counts: Counter[str] = Counter()
        self._scale = 1
        """The highest value of confidences in the answer, such as 1, 10 or 100."""

    def is_answer(self, value: Mapping[str, object]) -> bool:
        return _mode_entries(value, self._taxonomy) is not None

    def read(self, value: Mapping[str, object], *, repaired: bool) -> Answer:
        """Read an answer from its object.

        Args:
            value: The object.
            repaired: True if its JSON was invalid and had to be repaired.

        Raises:
            Malformed: The answer names no requested mode.
        """
        if repaired:
            self._add_remark("the answer's JSON had faults, which were repaired")
        value = _object_with_modes(value)
        entries = _mode_entries(value, self._taxonomy) or ()
        self._scale = scale_of(_raw_confidences(entries))
        if self._scale > 1:
            self._add_remark(f"confidences are read as numbers from 0 to {self._scale}")
        for name, entry in entries:
            self._read_entry(name, entry)
        if not self._verdicts:
            raise Malformed("the answer names no mode that was asked for")
        return Answer(
            verdicts=self._verdicts,
            findings=tuple(self._findings_by_key.values()),
            remarks=tuple(self._remarks),
        )

    def _add_remark(self, sentence: str) -> None:
        self._remarks[sentence] = None

    def _read_entry(self, name: object, entry: object) -> None:
        """Add the verdict and the findings of one mode; skip a mode that was not requested."""
        mode = find_mode(self._taxonomy, name)
        if mode is None:
            suffix = f": {one_line(name, 40)}" if isinstance(name, str) else ""
            self._add_remark(f"an unknown mode was left out{suffix}")
            return
        if mode.slug not in self._window.modes:
            self._add_remark(f"{mode.code} was answered without being asked for, and left out")
            return
        if isinstance(entry, Mapping):
            verdict = as_verdict(first_of(entry, _VERDICT_FIELDS))
            findings = first_of(entry, _FINDINGS_FIELDS)
            if findings is None and first_of(entry, _QUOTE_FIELDS) is not None:
                findings = entry  # one finding, with its fields beside the verdict
        else:
            verdict = as_verdict(entry)
            findings = None
        self._add_verdict(mode, verdict, self._read_findings(mode, findings))

    def _read_findings(self, mode: Mode, findings: object) -> list[Finding]:
        """Return the readable findings of a mode, and add remarks on problems."""

        def report(sentence: str) -> None:
            self._add_remark(f"{mode.code} {sentence}")

        if findings is None:
            return []
        if isinstance(findings, Mapping):
            findings = [findings]
        if not isinstance(findings, list):
            report("has findings that are not a list, and were left out")
            return []
        remaining_count = MOST_FINDINGS - self._finding_counts[mode.slug]
        if len(findings) > remaining_count:
            report(f"has more than {MOST_FINDINGS} findings: the first are taken")
        self._finding_counts[mode.slug] += len(findings)
        parsed_findings = []
        for finding in findings[: max(0, remaining_count)]:
            if isinstance(finding, Mapping):
                spans = read_spans(finding, self._view, report)
                parsed_findings.append(
                    read_finding(finding, mode, spans, self._view, self._scale, report)
                )
            else:
                report("has a finding that is not an object, and was left out")
        return parsed_findings

    def _add_verdict(
        self, mode: Mode, verdict: VerdictValue | None, findings: list[Finding]
    ) -> None:
        """Add the verdict on a mode and its findings, and make them consistent.

        - A mode with findings is present.
        - A present mode without findings gets a finding on the whole trace.
        - Of several verdicts on a mode, the one nearest to present counts.
        - Of equal findings, the one with the highest confidence counts.
        """
        if findings and verdict is not VerdictValue.PRESENT:
            label = "without a verdict" if verdict is None else f"under '{verdict.value}'"
            self._add_remark(f"{mode.code} has findings {label}: taken as present")
            verdict = VerdictValue.PRESENT
        if verdict is None:
            self._add_remark(f"{mode.code} has no readable verdict")
            return
        earlier_findings = self._findings_by_key.values()
        has_finding = findings or any(finding.mode == mode.slug for finding in earlier_findings)
        if verdict is VerdictValue.PRESENT and not has_finding:
            self._add_remark(f"{mode.code} is present without a place")
            findings = [Finding(mode.slug, None, None, "", _UNKNOWN_CONFIDENCE)]
        earlier_verdict = self._verdicts.get(mode.slug)
        if earlier_verdict is not None:
            self._add_remark(f"{mode.code} was answered more than once")
            verdict = max(earlier_verdict, verdict, key=_VERDICT_ORDER.index)
        self._verdicts[mode.slug] = verdict
        for finding in findings:
            key = (finding.mode, finding.first, finding.last, finding.evidence)
            earlier = self._findings_by_key.get(key)
            if earlier is None or earlier.confidence < finding.confidence:
                self._findings_by_key[key] = finding


def read_spans(fields: Mapping[str, object], view: NumberedSpans, report: Report) -> list[int]:
    """Read the first and last span of a finding.

    A field may hold a range. If one field is missing, the other replaces it.

    Args:
        fields: The finding in the answer.
        view: The trace as it was sent.
        report: Called with problems.

    Returns:
        The indices of the named spans that exist, in ascending order, at most two.
    """
    first_start, first_end = _as_number_range(fields.get("first"))
    last_start, last_end = _as_number_range(fields.get("last"))
    start = last_start if first_start is None else first_start
    end = first_end if last_end is None else last_end
    if start is None and end is None:
        start, end = _as_number_range(first_of(fields, _SPANS_FIELDS))
    numbers = [number for number in (start, end) if number is not None]
    indices = [index for index in map(view.index_of, numbers) if index is not None]
    if not numbers and any(fields.get(name) not in (None, "", []) for name in ("first", "last")):
        report("names a span in a way that cannot be read")
    if len(indices) < len(numbers):
        report("names a span that does not exist")
    if indices != sorted(indices):
        report("names a range that ends before it begins")
    return sorted(indices)


def read_finding(
    fields: Mapping[str, object],
    mode: Mode,
    spans: Sequence[int],
    view: NumberedSpans,
    scale: int,
    report: Report,
) -> Finding:
    """Read the finding in an answer, and cut its texts to the allowed lengths.

    Args:
        fields: The finding in the answer.
        mode: The mode of the finding.
        spans: The indices of its first and last span; empty for the whole trace.
        view: The trace as it was sent.
        scale: The highest value of a confidence.
        report: Called with problems.
    """
    quote = as_text(first_of(fields, _QUOTE_FIELDS))
    if len(quote) > QUOTE_CHARS:
        report(f"has a quote of more than {QUOTE_CHARS:,} characters, which was cut")
    confidence = as_confidence(first_of(fields, CONFIDENCE_FIELDS), scale)
    if confidence is None:
        report(f"has a confidence that cannot be read, and counts as {_UNKNOWN_CONFIDENCE}")
    rationale = view.with_timeline_numbers(as_text(first_of(fields, _RATIONALE_FIELDS)).strip())
    return Finding(
        mode=mode.slug,
        first=view.key(spans[0]) if spans else None,
        last=view.key(spans[-1]) if spans else None,
        rationale=rationale[:RATIONALE_CHARS],
        confidence=_UNKNOWN_CONFIDENCE if confidence is None else confidence,
        decisive=_as_boolean(fields.get("decisive")),
        evidence=Evidence(key=None, quote=quote[:QUOTE_CHARS]) if quote.strip() else None,
    )


def find_mode(taxonomy: Taxonomy, name: object) -> Mode | None:
    """Find a mode by its code, slug or name, or by code and name: ``FM-1.3: Step repetition``.

    Args:
        taxonomy: The taxonomy of the modes.
        name: A value of an answer.
    """
    if isinstance(name, bool) or not isinstance(name, str | int | float):
        return None
    text = str(name).strip()
    for prefix in ("FM-", "FM ", "FM", "mode "):
        if text.casefold().startswith(prefix.casefold()):
            mode = taxonomy.find(text[len(prefix) :])
            if mode:
                return mode
    mode = taxonomy.find(text)
    if mode is None and " " in text:
        code, _, mode_name = text.partition(" ")
        mode_by_code = find_mode(taxonomy, code.rstrip(":.,"))
        if mode_by_code is not None and mode_by_code == taxonomy.find(mode_name):
            return mode_by_code
    return mode


def _object_with_modes(value: Mapping[str, object]) -> Mapping[str, object]:
    """Return the object with the field of the modes: the value, or the only such object in it.

    Return the value if there is no such object.
    """
    if first_of(value, _MODES_FIELDS) is not None:
        return value
    objects = [entry for entry in value.values() if isinstance(entry, Mapping)]
    candidates = [entry for entry in objects if first_of(entry, _MODES_FIELDS) is not None]
    return candidates[0] if len(candidates) == 1 else value


def first_of(value: Mapping[str, object], names: Sequence[str]) -> object:
    """Return the first field of an object that is not None; None if there is none.

    Args:
        value: An object of an answer.
        names: The possible names of the field, in order of preference.
    """
    return next((value[name] for name in names if value.get(name) is not None), None)


def scale_of(confidences: Iterable[object]) -> int:
    """Return the scale of confidences: the least of 1, 5, 10 and 100 that no confidence exceeds.

    Numbers above 100 do not count.
    """
    numbers = (
        value
        for value in confidences
        if isinstance(value, int | float) and not isinstance(value, bool)
    )
    largest = max((number for number in numbers if number <= 100), default=0)
    return next((scale for scale in (1, 5, 10) if largest <= scale), 100)


def _raw_confidences(entries: Iterable[tuple[object, object]]) -> Iterator[object]:
    """Yield the confidence of each finding as it is in the answer."""
    for _, entry in entries:
        findings = first_of(entry, _FINDINGS_FIELDS) if isinstance(entry, Mapping) else None
        for finding in findings[:MOST_FINDINGS] if isinstance(findings, list) else ():
            if isinstance(finding, Mapping):
                yield first_of(finding, CONFIDENCE_FIELDS)


def _mode_name(entry: object) -> object:
    if not isinstance(entry, Mapping):
        return None
    return next((entry[key] for key in ("mode", "code", "slug", "name") if key in entry), None)


def as_text(value: object) -> str:
    """Read a text, or join a list of texts by ellipses; empty for other values."""
    if isinstance(value, list):
        value = " … ".join(part for part in value if isinstance(part, str))
    return encodable_text(value) if isinstance(value, str) else ""


def as_number(value: object) -> int | None:
    """Read the number of a span: an integer, or a text such as ``12`` or ``#12``."""
    if isinstance(value, str):
        match = _NUMBER_PATTERN.fullmatch(value)
        return None if match is None else int(match[1])
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def as_verdict(value: object) -> VerdictValue | None:
    """Return the verdict for a name, a synonym or a boolean; None for other values."""
    if isinstance(value, bool):
        return VerdictValue.PRESENT if value else VerdictValue.ABSENT
    if not isinstance(value, str):
        return None
    return _VERDICTS_BY_WORD.get(
        " ".join(value.casefold().replace("_", " ").split()).strip(" .!'\"")
    )


def _as_number_range(value: object) -> tuple[int | None, int | None]:
    """Read the lowest and highest span number in a value: ``3``, ``[3, 4]``, ``"3-4"``.

    Both are None if the value holds no number.
    """
    if isinstance(value, str):
        match = _RANGE_PATTERN.fullmatch(value)
        value = [match[1], match[2]] if match else [value]
    parts = value if isinstance(value, list) else [value]
    numbers = [number for number in map(as_number, parts) if number is not None]
    return (min(numbers), max(numbers)) if numbers else (None, None)


def as_confidence(value: object, scale: int) -> float | None:
    """Convert a value of an answer to a confidence from 0 to 1, or None if it is none.

    Args:
        value: A number from 0 to ``scale``, or a text such as ``0.8``, ``80 %`` or ``80``. A text
            above 1 means percent.
        scale: The highest value of a number.
    """
    if isinstance(value, str):
        match = _CONFIDENCE_PATTERN.fullmatch(value)
        if match is None:
            return None
        value = float(match[1])
        scale = 100 if match[2] or value > 1 else scale
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Compared before the division, because an integer of over 308 digits is no float.
    return value / scale if 0 <= value <= scale else None


def _as_boolean(value: object) -> bool | None:
    """Return a boolean, which a model may write as a verdict; None for other values."""
    verdict = as_verdict(value)
    if verdict is None or verdict is VerdictValue.UNSURE:
        return None
    return verdict is VerdictValue.PRESENT


# The functions from here on search for JSON in a text.

_THOUGHT: Final = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
_OBJECT_START: Final = re.compile(r'\{\s*(?=["}])')
_MOST_STARTS: Final = 200
"""The most braces that are tried as the beginning of an object."""

_MOST_READ: Final = 20_000_000
"""The most characters that all tries together read."""

MOST_REPAIRED_CHARS: Final = 200_000
"""The most code points of an answer that is repaired. A repair is much slower than parsing."""

_PYTHON_OBJECT: Final = re.compile(r"\{\s*'")

_TRAILING_WORDS: Final = re.compile(r"[^\"'{}\[\]:]*")
"""The text that may follow a complete object: words, and the end of a fence."""

_BRACKETS: Final = re.compile(r"\\*\"|[{}\[\]]")
_BRACKETS_OF_PYTHON: Final = re.compile(r"\\*'|[{}\[\]]")
"""Brackets, and quotation marks with the backslashes before them. After an even number of
backslashes, a quotation mark begins or ends a text."""


class Malformed(AskError):
    """An answer that cannot be used; the message says why."""


class FoundObject(NamedTuple):
    """An object of an answer; ``repaired`` if its JSON was invalid."""

    value: Mapping[str, object]
    repaired: bool = False


def find_object(
    text: str, fits: Callable[[Mapping[str, object]], bool], content: str = "list of modes"
) -> FoundObject:
    """Find the last complete JSON object of the expected kind in a text.

    JSON with small faults is repaired unless its end is missing.

    Args:
        text: The answer of a model, with any text around its JSON.
        fits: Returns True for an object of the expected kind.
        content: The content of the expected object, for messages.

    Raises:
        Malformed: There is no such object, or the end of a later object is missing.
    """
    stripped = text.strip()
    if not stripped:
        raise Malformed("the answer is empty")
    try:
        value = orjson.loads(stripped)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            value = orjson.loads(value)  # JSON as a text within JSON
    except orjson.JSONDecodeError:
        answer = _text_after_thoughts(text)
        try:
            return FoundObject(_find_last_object(answer, fits, content))
        except Malformed:
            repaired = _repair_object(answer)
            if repaired is None or not fits(repaired):
                raise
            return FoundObject(repaired, repaired=True)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        # Some models write the list of modes without the object around it.
        value = {"modes": value}
    if not isinstance(value, dict):
        raise Malformed(f"the answer is {_kind_name(value)}, not a JSON object")
    if not fits(value):
        raise Malformed(f"the answer's JSON object holds no {content}")
    return FoundObject(value)


def _repair_object(text: str) -> Mapping[str, object] | None:
    """Return the repaired JSON object of a text, or None if it cannot be repaired."""
    start = text.find("{")
    last = text.rfind("}")
    if not 0 <= start < last <= start + MOST_REPAIRED_CHARS:
        return None
    if not _TRAILING_WORDS.fullmatch(text, last + 1):
        return None
    object_text = text[start : last + 1]
    value = _python_literal(object_text)
    if value is None:
        if _has_open_brackets(object_text, has_double_quotes='"' in object_text):
            return None
        try:
            value = json_repair.loads(object_text)
        except (RecursionError, ValueError):  # ValueError: an integer of thousands of digits
            return None
    return value if isinstance(value, dict) else None


def _python_literal(text: str) -> object:
    """Convert a Python literal to a JSON value; None for other texts."""
    if not _PYTHON_OBJECT.match(text):
        return None
    try:
        with warnings.catch_warnings(action="ignore"):  # of escapes that Python does not know
            value = ast.literal_eval(text)
        return json.loads(json.dumps(value))  # tuples become lists, and all keys texts
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None  # the documented errors for a text that is no literal


def _has_open_brackets(object_text: str, *, has_double_quotes: bool) -> bool:
    """Check whether brackets outside of strings stay open, so that a part is missing.

    ``has_double_quotes`` selects double or single quotation marks as the limits of strings.
    """
    pattern = _BRACKETS if has_double_quotes else _BRACKETS_OF_PYTHON
    depth = 0
    is_in_string = False
    # A match is a bracket, or a quotation mark with the backslashes before it.
    for mark in pattern.finditer(object_text):
        char = mark[0][-1]
        if char in "\"'":
            backslash_count = len(mark[0]) - 1
            if backslash_count % 2 == 0:
                is_in_string = not is_in_string
        elif not is_in_string:
            depth += 1 if char in "{[" else -1
    return depth > 0


def _text_after_thoughts(text: str) -> str:
    """Return the text after the last closed thought, up to the next open thought."""
    start = 0
    end = len(text)
    for tag in _THOUGHT.finditer(text):
        is_closing = bool(tag[1])
        if is_closing:
            start = tag.end()
            end = len(text)
        elif end == len(text):  # the first thought after the last closed one
            end = tag.start()
    return text[start:end]


def _find_last_object(
    text: str, fits: Callable[[Mapping[str, object]], bool], content: str
) -> Mapping[str, object]:
    """Return the last complete JSON object that fits; ``content`` describes it in messages.

    Raises:
        Malformed: No object fits, or the end of a later object is missing.
    """
    last_match: Mapping[str, object] | None = None
    problem = ""
    offset = 0
    chars_read = 0
    start_count = 0
    while start := _OBJECT_START.search(text, offset):
        if chars_read > _MOST_READ or start_count == _MOST_STARTS:
            problem = problem or "too many begin in it"
            break
        piece = _decode_object(text, start.start())
        if piece.problem:
            problem = piece.problem
        elif isinstance(piece.value, dict) and fits(piece.value):
            last_match = piece.value
            problem = ""
        offset = start.end() if piece.problem else piece.end
        chars_read += piece.end - start.start()
        start_count += 1
    if problem:
        raise Malformed(f"the answer is not a complete JSON object: {problem}")
    if last_match is None:
        raise Malformed(f"the answer holds no JSON object with a {content}")
    return last_match


class _Decoded(NamedTuple):
    """The JSON value that begins at an offset of a text.

    Attributes:
        value: The value; None if there is a problem.
        end: The offset up to which the text was read.
        problem: The reason why there is no value, otherwise empty.
    """

    value: object
    end: int
    problem: str = ""


def _decode_object(text: str, start: int) -> _Decoded:
    """Decode the JSON object at an offset of a text."""
    decoder = json.JSONDecoder(strict=False)  # accepts line breaks in strings
    try:
        return _Decoded(*decoder.raw_decode(text, start))
    except json.JSONDecodeError as error:
        place = f"at character {error.pos + 1:,} of {len(text):,}"
        return _Decoded(None, error.pos, f"{error.msg.removesuffix(' at')} {place}")
    # These errors do not name the offset, so the whole text counts as read.
    except RecursionError:
        return _Decoded(None, len(text), "it is nested too deeply")
    except ValueError:
        return _Decoded(None, len(text), "it holds a number that is too long")


def _kind_name(value: object) -> str:
    if isinstance(value, list):
        return "a JSON list"
    if isinstance(value, str):
        return "a JSON text"
    return "a bare JSON value"
