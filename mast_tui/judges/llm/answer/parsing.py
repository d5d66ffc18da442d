"""The answer that a model is asked for: its JSON schema, and reading what comes back."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol

from mast_tui.judges.llm.answer.json_object import Malformed, find_object
from mast_tui.judges.llm.request import Window
from mast_tui.labels import Evidence, Finding, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode, Taxonomy

DIGEST_CHARS: Final = 4_000
"""A longer digest is cut, in code points."""

QUOTE_CHARS: Final = 10_000
RATIONALE_CHARS: Final = 4_000
"""So are quotes and rationales."""

ASKED_FINDINGS: Final = 5
"""Of one mode so many findings are asked for at most."""

SMALL_ANSWER: Final = 2_000
"""Where an answer about few modes may take fewer tokens than this, its schema bounds each text."""

MOST_FINDINGS: Final = 20
"""Of one mode no more findings are taken from an answer: each is looked for in the trace."""

MOST_ENTRIES: Final = 1_000
"""Of an answer no more entries for modes are read."""

_FRAME: Final = 90
"""About the tokens that the names, numbers and indents of one mode's answer take."""

_LEAST_CHARS: Final = 30
"""With fewer characters for each text nothing is said: then there are no bounds."""

_NUMBER: Final = re.compile(r"\s*(?:spans?\s*)?#?\s*(\d{1,12})(?:\.0+)?\s*", re.IGNORECASE)
_RANGE: Final = re.compile(r"\s*#?(\d{1,12})\s*(?:-|–|to|\.\.)\s*#?(\d{1,12})\s*")
_SHARE: Final = re.compile(r"\s*(\d{1,6}(?:\.\d{1,20})?|\.\d{1,20})\s*(%?)\s*")
_MODES: Final = ("modes", "failure_modes")
_VERDICT: Final = ("verdict", "present", "answer")
_QUOTE: Final = ("quote", "evidence")
_RATIONALE: Final = ("rationale", "reason", "explanation")
CONFIDENCE: Final = ("confidence", "score", "probability", "certainty", "likelihood")
_FINDINGS: Final = ("findings", "instances", "occurrences")
_SPANS: Final = ("spans", "span", "range", "steps", "step", "number")
"""The names under which models give things: that which is asked for first."""

Tell = Callable[[str], object]
"""Told what is odd, in words for a person."""

_SURROGATES: Final = re.compile("[\ud800-\udfff]")

_VERDICTS_BY_WORD: Final = {
    **dict.fromkeys(("present", "yes", "true", "detected", "holds", "met"), VerdictValue.PRESENT),
    **dict.fromkeys(
        ("absent", "no", "false", "not present", "not detected", "fails", "not met"),
        VerdictValue.ABSENT,
    ),
    **dict.fromkeys(("unsure", "uncertain", "unclear", "unknown", "maybe"), VerdictValue.UNSURE),
}

_VERDICTS: Final = tuple(value.value for value in VerdictValue)
_RANK: Final = (VerdictValue.ABSENT, VerdictValue.UNSURE, VerdictValue.PRESENT)


class NumberedSpans(Protocol):
    """The spans of a trace, by the numbers by which they were sent."""

    def index_of(self, number: int) -> int | None:
        """The span that has this number, None where none has."""

    def key(self, index: int) -> str:
        """The key by which the trace itself knows a span."""

    def with_own_numbers(self, text: str) -> str:
        """What was said of the trace, with the numbers by which people know its spans."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said of one window.

    ``verdicts`` are by slug; a mode that it left out has none. A mode is ``present`` where and
    only where there is a finding of it. Nothing of the findings is checked: their quotes are as the
    model gave them, without a place, and their ranges name spans that exist, or none. ``remarks``
    say what was odd, in words for a person.
    """

    verdicts: Mapping[str, VerdictValue]
    findings: tuple[Finding, ...]
    digest: str
    remarks: tuple[str, ...]


def answer_schema(codes: Sequence[str], *, digest: bool, tokens: int) -> dict[str, object]:
    """Make the JSON schema of an answer about the modes with these codes, in the strict form.

    Every property is required and no other is allowed, as structured outputs ask for. Properties
    stand in the order in which they are written: what was looked at and the evidence first, the
    verdict after. An object with a property for each mode leaves none out, and has an end.

    A small model writes on and on where it may. Where an answer has little room, a mode gets one
    finding and its texts so many characters that all of it fits, even at a token for each: the
    servers that run such models keep to ``maxLength``, which some vendors' servers refuse.

    Args:
        codes: The modes' codes.
        digest: Whether notes for the next part of the run are asked for.
        tokens: The most that the answer may take.
    """
    chars = (tokens - _FRAME * len(codes)) // (3 * len(codes) + digest)
    bounded = tokens < SMALL_ANSWER and chars >= _LEAST_CHARS
    bound: dict[str, object] = {"maxLength": chars} if bounded else {}
    finding = object_schema(
        rationale={"type": "string", **bound},
        quote={"type": ["string", "null"], **bound},
        first={"type": ["integer", "null"]},
        last={"type": ["integer", "null"]},
        confidence={"type": "number"},
        decisive={"type": ["boolean", "null"]},
    )
    most = 1 if bound else ASKED_FINDINGS
    mode = object_schema(
        notes={"type": "string", **bound},
        findings={"type": "array", "items": finding, "maxItems": most},
        verdict={"type": "string", "enum": list(_VERDICTS)},
    )
    one: dict[str, object] = {"$ref": "#/$defs/mode"}
    modes = object_schema(**dict.fromkeys(codes, one))
    whole = (
        object_schema(modes=modes, digest={"type": "string", **bound})
        if digest
        else object_schema(modes=modes)
    )
    return {**whole, "$defs": {"mode": mode}}  # once, as some servers count it for every request


def object_schema(**properties: dict[str, object]) -> dict[str, object]:
    """An object of which every property is required, in the order in which they are written."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def parse_answer(text: str, taxonomy: Taxonomy, window: Window, view: NumberedSpans) -> Answer:
    """Read what a model said of a window, with patience.

    Whatever can only mean one thing is taken so, with a remark where that is not plain; nothing
    is made up.

    Args:
        text: The answer, with whatever stands around its JSON.
        taxonomy: Where the modes are looked up.
        window: What was asked about.
        view: The trace as it was sent.

    Raises:
        Malformed: No answer can be read from the text, in words.
    """
    reader = _Reader(taxonomy, window, view)
    found = find_object(text, reader.fits)
    return reader.read(found.value, mended=found.mended)


class _Reader:
    """Reads one answer; what is odd collects in its remarks."""

    def __init__(self, taxonomy: Taxonomy, window: Window, view: NumberedSpans) -> None:
        self._taxonomy = taxonomy
        self._window = window
        self._view = view
        self._remarks: dict[str, None] = {}
        """What was odd, each thing once, in the order in which it was met."""
        self._verdicts: dict[str, VerdictValue] = {}
        self._found: dict[tuple[object, ...], Finding] = {}
        self._taken: Counter[str] = Counter()
        self._scale = 1

    def fits(self, value: Mapping[str, object]) -> bool:
        """Whether an object can be an answer."""
        return self._entries(value) is not None

    def read(self, value: Mapping[str, object], *, mended: bool) -> Answer:
        """What the object says; ``mended`` tells that it was no right JSON as it stood."""
        if mended:
            self._tell("the answer's JSON had faults, which were mended")
        value = _unwrapped(value)
        entries = self._entries(value) or ()
        self._scale = scale_of(_confidences(entries))
        if self._scale > 1:
            self._tell(f"confidences are taken as of {self._scale}")
        for name, entry in entries:
            self._entry(name, entry)
        if not self._verdicts:
            raise Malformed("the answer names no mode that was asked for")
        return Answer(
            verdicts=self._verdicts,
            findings=tuple(self._found.values()),
            digest=read_digest(value, self._window, self._tell),
            remarks=tuple(self._remarks),
        )

    def _tell(self, words: str) -> None:
        self._remarks[words] = None

    def _entries(self, value: Mapping[str, object]) -> list[tuple[object, object]] | None:
        """Each mode's name and what is said of it; None where this is no answer."""
        value = _unwrapped(value)
        modes = first_of(value, _MODES)
        if isinstance(modes, list):
            return [(_name_in(entry), entry) for entry in modes[:MOST_ENTRIES]]
        if isinstance(modes, dict):
            return list(islice(modes.items(), MOST_ENTRIES))
        if modes is None:
            entries = list(islice(value.items(), MOST_ENTRIES))
            if any(self._mode(name) for name, _ in entries):
                return [(name, entry) for name, entry in entries if name != "digest"]
        return None

    def _mode(self, name: object) -> Mode | None:
        return find_mode(self._taxonomy, name)

    def _entry(self, name: object, entry: object) -> None:
        mode = self._mode(name)
        if mode is None:
            said = f": {one_line(name, 40)}" if isinstance(name, str) else ""
            self._tell(f"an unknown mode was left out{said}")
            return
        if mode.slug not in self._window.modes:
            self._tell(f"{mode.code} was answered without being asked for, and left out")
            return
        if isinstance(entry, Mapping):
            verdict = as_verdict(first_of(entry, _VERDICT))
            findings = first_of(entry, _FINDINGS)
            if findings is None and first_of(entry, _QUOTE) is not None:
                findings = entry  # one finding, whose fields stand beside the verdict
        else:
            verdict, findings = as_verdict(entry), None
        self._take(mode, verdict, self._findings(mode, findings))

    def _findings(self, mode: Mode, findings: object) -> list[Finding]:
        def tell(words: str) -> None:
            self._tell(f"{mode.code} {words}")

        if findings is None:
            return []
        if isinstance(findings, Mapping):
            findings = [findings]
        if not isinstance(findings, list):
            tell("has findings that are no list, and were left out")
            return []
        left = MOST_FINDINGS - self._taken[mode.slug]
        if len(findings) > left:
            tell(f"has more than {MOST_FINDINGS} findings: the first are taken")
        self._taken[mode.slug] += len(findings)
        read = []
        for finding in findings[: max(0, left)]:
            if isinstance(finding, Mapping):
                spans = spans_named(finding, self._view, tell)
                read.append(read_finding(finding, mode, spans, self._view, self._scale, tell))
            else:
                tell("has a finding that is no object, and was left out")
        return read

    def _take(self, mode: Mode, verdict: VerdictValue | None, findings: list[Finding]) -> None:
        if findings and verdict is not VerdictValue.PRESENT:
            said = "without a verdict" if verdict is None else f"under '{verdict.value}'"
            self._tell(f"{mode.code} has findings {said}: taken as present")
            verdict = VerdictValue.PRESENT
        if verdict is None:
            self._tell(f"{mode.code} has no verdict that can be read")
            return
        somewhere = any(finding.mode == mode.slug for finding in self._found.values())
        if verdict is VerdictValue.PRESENT and not findings and not somewhere:
            self._tell(f"{mode.code} is present without a place")
            findings = [Finding(mode.slug, None, None, "", 0.5)]
        before = self._verdicts.get(mode.slug)
        if before is not None:
            self._tell(f"{mode.code} was answered more than once")
            verdict = max(before, verdict, key=_RANK.index)
        self._verdicts[mode.slug] = verdict
        for finding in findings:
            key = (finding.mode, finding.first, finding.last, finding.evidence)
            known = self._found.get(key)
            if known is None or known.confidence < finding.confidence:
                self._found[key] = finding


def spans_named(said: Mapping[str, object], view: NumberedSpans, tell: Tell) -> list[int]:
    """Read which spans a finding names: the indices of its ends, as far as there are such spans.

    Args:
        said: What the model says of it.
        view: The trace as it was sent.
        tell: Told what is odd.
    """
    first, end_of_first = _as_range(said.get("first"))
    start_of_last, last = _as_range(said.get("last"))
    ends = [start_of_last if first is None else first, end_of_first if last is None else last]
    if ends == [None, None]:
        ends = _as_range(first_of(said, _SPANS))
    named = [number for number in ends if number is not None]
    there = [index for index in map(view.index_of, named) if index is not None]
    if not named and any(said.get(name) not in (None, "", []) for name in ("first", "last")):
        tell("names a span in a way that cannot be read")
    if len(there) < len(named):
        tell("names a span that does not exist")
    if there != sorted(there):
        tell("names a range backwards")
    return sorted(there)


def read_finding(
    said: Mapping[str, object],
    mode: Mode,
    spans: Sequence[int],
    view: NumberedSpans,
    scale: int,
    tell: Tell,
) -> Finding:
    """Read a finding.

    Args:
        said: What the model says of it.
        mode: What it is a finding of.
        spans: The indices of its first and last span; none for the run as a whole.
        view: The trace as it was sent.
        scale: What confidences are of.
        tell: Told what is odd.
    """
    quote = as_text(first_of(said, _QUOTE))
    if len(quote) > QUOTE_CHARS:
        tell(f"has a quote of more than {QUOTE_CHARS:,} characters, which was cut")
    confidence = as_confidence(first_of(said, CONFIDENCE), scale)
    if confidence is None:
        tell("has a confidence that cannot be read, and counts as 0.5")
    rationale = view.with_own_numbers(as_text(first_of(said, _RATIONALE)).strip())
    return Finding(
        mode=mode.slug,
        first=view.key(spans[0]) if spans else None,
        last=view.key(spans[-1]) if spans else None,
        rationale=rationale[:RATIONALE_CHARS],
        confidence=0.5 if confidence is None else confidence,
        decisive=_as_decisive(said.get("decisive")),
        evidence=Evidence(key=None, quote=quote[:QUOTE_CHARS]) if quote.strip() else None,
    )


def read_digest(said: Mapping[str, object], window: Window, tell: Tell) -> str:
    """Read the notes for whoever reads the part that follows; none where none does.

    Args:
        said: The answer.
        window: What it is about.
        tell: Told where there are none.
    """
    if not window.goes_on:
        return ""
    digest = as_text(said.get("digest")).strip()
    if not digest:
        tell("no summary for the part that follows")
    return digest[:DIGEST_CHARS]


def find_mode(taxonomy: Taxonomy, name: object) -> Mode | None:
    """The mode that a code, slug or name means, alone or as in ``FM-1.3: Step repetition``."""
    if isinstance(name, bool) or not isinstance(name, str | int | float):
        return None
    text = str(name).strip()
    for prefix in ("FM-", "FM ", "FM", "mode "):
        if text.casefold().startswith(prefix.casefold()):
            found = taxonomy.find(text[len(prefix) :])
            if found:
                return found
    found = taxonomy.find(text)
    if found is None and " " in text:
        first, _, rest = text.partition(" ")
        by_code, by_name = find_mode(taxonomy, first.rstrip(":.,")), taxonomy.find(rest)
        found = by_code if by_code is not None and by_code == by_name else None
    return found


def _unwrapped(value: Mapping[str, object]) -> Mapping[str, object]:
    """The object with the modes, where it is the only one within another."""
    if first_of(value, _MODES) is not None:
        return value
    inner = [entry for entry in value.values() if isinstance(entry, Mapping)]
    inner = [entry for entry in inner if first_of(entry, _MODES) is not None]
    return inner[0] if len(inner) == 1 else value


def first_of(value: Mapping[str, object], names: Sequence[str]) -> object:
    """What stands under the first of some names that is there."""
    return next((value[name] for name in names if value.get(name) is not None), None)


def scale_of(confidences: Iterable[object]) -> int:
    """What the confidences of an answer are of: 1, or 5, 10 or 100 where one is above that."""
    numbers = (said for said in confidences if isinstance(said, int | float))
    largest = max(
        (said for said in numbers if not isinstance(said, bool) and said <= 100), default=0
    )
    return next((scale for scale in (1, 5, 10) if largest <= scale), 100)


def _confidences(entries: Iterable[tuple[object, object]]) -> Iterator[object]:
    """What is said of how sure each finding is."""
    for _, entry in entries:
        findings = first_of(entry, _FINDINGS) if isinstance(entry, Mapping) else None
        for finding in findings[:MOST_FINDINGS] if isinstance(findings, list) else ():
            if isinstance(finding, Mapping):
                yield first_of(finding, CONFIDENCE)


def _name_in(entry: object) -> object:
    if not isinstance(entry, Mapping):
        return None
    return next((entry[key] for key in ("mode", "code", "slug", "name") if key in entry), None)


def as_text(value: object) -> str:
    """A text, or texts in a list joined by an ellipsis; empty for anything else."""
    if isinstance(value, list):
        value = " … ".join(part for part in value if isinstance(part, str))
    return _SURROGATES.sub("�", value) if isinstance(value, str) else ""


def as_number(value: object) -> int | None:
    """Read a span's number: an integer of any length, or a text such as ``12`` or ``#12``."""
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value)
        return None if match is None else int(match[1])
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def as_verdict(value: object) -> VerdictValue | None:
    """A verdict's word, or yes and no."""
    if isinstance(value, bool):
        return VerdictValue.PRESENT if value else VerdictValue.ABSENT
    if not isinstance(value, str):
        return None
    return _VERDICTS_BY_WORD.get(
        " ".join(value.casefold().replace("_", " ").split()).strip(" .!'\"")
    )


def _as_range(value: object) -> list[int | None]:
    """Spans that are named in one value: ``3``, ``[3, 4]``, ``"3-4"``."""
    if isinstance(value, str):
        ends = _RANGE.fullmatch(value)
        value = [ends[1], ends[2]] if ends else [value]
    named = value if isinstance(value, list) else [value]
    numbers = [number for number in map(as_number, named) if number is not None]
    return [min(numbers), max(numbers)] if numbers else [None, None]


def as_confidence(value: object, scale: int) -> float | None:
    """Read a confidence in [0, 1].

    Args:
        value: A number on the scale, or a text; a text above 1 is percent.
        scale: The highest value that a number may have.

    Returns:
        The confidence, None where the value is none.
    """
    if isinstance(value, str):
        match = _SHARE.fullmatch(value)
        if match is None:
            return None
        value = float(match[1])
        scale = 100 if match[2] or value > 1 else scale
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Before the division: an integer of more than 308 digits is too large to become a float.
    return value / scale if 0 <= value <= scale else None


def _as_decisive(value: object) -> bool | None:
    """Yes or no, None for anything else."""
    verdict = as_verdict(value)
    if verdict is None or verdict is VerdictValue.UNSURE:
        return None
    return verdict is VerdictValue.PRESENT
