"""The answer that a model is asked for: its JSON schema, and reading what comes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from mast_tui.judges.llm.answer_json import Malformed, find_object
from mast_tui.judges.llm.answer_values import (
    Remarks,
    as_confidence,
    as_decisive,
    as_number,
    as_text,
    as_verdict,
)
from mast_tui.judges.llm.model import Window
from mast_tui.labels import VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode, Taxonomy

__all__ = ["Answer", "Claim", "Malformed", "answer_schema", "parse_answer"]

DIGEST_CHARS: Final = 4_000
"""A longer digest is cut, in code points."""

QUOTE_CHARS: Final = 10_000
RATIONALE_CHARS: Final = 4_000
"""So are quotes and rationales."""

MOST_FINDINGS: Final = 20
"""Of one mode no more findings are taken from an answer: each is looked for in the trace."""

MOST_ENTRIES: Final = 1_000
"""Of an answer no more entries for modes are read."""

_VERDICTS: Final = tuple(value.value for value in VerdictValue)
_RANK: Final = (VerdictValue.ABSENT, VerdictValue.UNSURE, VerdictValue.PRESENT)


@dataclass(frozen=True, slots=True)
class Claim:
    """That a mode shows somewhere, as a model says it; nothing of it is checked.

    ``mode`` is a slug. ``first`` and ``last`` are indices of spans that exist, both None where
    none were named or none of them exists. ``quote`` is as the model gave it, None where it gave
    none. ``confidence`` lies in [0, 1].
    """

    mode: str
    first: int | None
    last: int | None
    quote: str | None
    rationale: str
    confidence: float
    decisive: bool | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said of one window.

    ``verdicts`` are by slug; a mode that it left out has none. A mode is ``present`` where and
    only where there is a claim for it. ``remarks`` say what was odd, in words for a person.
    """

    verdicts: Mapping[str, VerdictValue]
    claims: tuple[Claim, ...]
    digest: str
    remarks: tuple[str, ...]


def answer_schema(codes: Sequence[str], *, digest: bool) -> dict[str, object]:
    """The JSON schema of an answer about the modes with these codes, in the strict form.

    Every property is required and no other is allowed, as structured outputs ask for.
    """
    finding = _object(
        first={"type": ["integer", "null"]},
        last={"type": ["integer", "null"]},
        quote={"type": ["string", "null"]},
        rationale={"type": "string"},
        confidence={"type": "number"},
        decisive={"type": ["boolean", "null"]},
    )
    mode = _object(
        mode={"type": "string", "enum": list(codes)},
        verdict={"type": "string", "enum": list(_VERDICTS)},
        findings={"type": "array", "items": finding},
    )
    modes: dict[str, object] = {"type": "array", "items": mode}
    return _object(modes=modes, digest={"type": "string"}) if digest else _object(modes=modes)


def _object(**properties: dict[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def parse_answer(
    text: str, *, taxonomy: Taxonomy, window: Window, spans: int | None = None
) -> Answer:
    """What a model said of a window, read with patience.

    ``spans`` is how many the trace has, ``window.last + 1`` where left out. Whatever can only mean
    one thing is taken so, with a remark where that is not plain; nothing is made up.

    Raises:
        Malformed: no answer can be read from the text, in words.
    """
    reader = _Reader(taxonomy, window, window.last + 1 if spans is None else spans)
    return reader.read(find_object(text, reader.fits))


class _Reader:
    """Reads one answer; what is odd collects in its remarks."""

    def __init__(self, taxonomy: Taxonomy, window: Window, spans: int) -> None:
        self._taxonomy = taxonomy
        self._window = window
        self._spans = spans
        self._remarks = Remarks()
        self._verdicts: dict[str, VerdictValue] = {}
        self._claims: dict[tuple[object, ...], Claim] = {}
        self._taken: Counter[str] = Counter()

    def fits(self, value: Mapping[str, object]) -> bool:
        """Whether an object can be an answer."""
        return self._entries(value) is not None

    def read(self, value: Mapping[str, object]) -> Answer:
        """What the object says."""
        value = _unwrapped(value)
        for name, entry in self._entries(value) or ():
            self._entry(name, entry)
        if not self._verdicts:
            raise Malformed("the answer names no mode that was asked for")
        return Answer(
            verdicts=self._verdicts,
            claims=tuple(self._claims.values()),
            digest=self._digest(value),
            remarks=self._remarks.all(),
        )

    def _entries(self, value: Mapping[str, object]) -> list[tuple[object, object]] | None:
        """Each mode's name and what is said of it; None where this is no answer."""
        value = _unwrapped(value)
        modes = value.get("modes")
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
        """The mode that a code, slug or name means, alone or as in ``FM-1.3: Step repetition``."""
        if isinstance(name, bool) or not isinstance(name, str | int | float):
            return None
        text = str(name).strip()
        for prefix in ("FM-", "FM ", "FM", "mode "):
            if text.casefold().startswith(prefix.casefold()):
                found = self._taxonomy.find(text[len(prefix) :])
                if found:
                    return found
        found = self._taxonomy.find(text)
        if found is None and " " in text:
            first, _, rest = text.partition(" ")
            by_code, by_name = self._mode(first.rstrip(":.,")), self._taxonomy.find(rest)
            found = by_code if by_code is not None and by_code == by_name else None
        return found

    def _entry(self, name: object, entry: object) -> None:
        mode = self._mode(name)
        if mode is None:
            said = f": {one_line(name, 40)}" if isinstance(name, str) else ""
            self._remarks.add(f"an unknown mode was left out{said}")
            return
        if mode.slug not in self._window.modes:
            self._remarks.add(f"{mode.code} was answered without being asked for, and left out")
            return
        if isinstance(entry, Mapping):
            verdict = as_verdict(entry.get("verdict"))
            findings = entry.get("findings")
        else:
            verdict, findings = as_verdict(entry), None
        self._take(mode, verdict, self._findings(mode, findings))

    def _findings(self, mode: Mode, findings: object) -> list[Claim]:
        if findings is None:
            return []
        if isinstance(findings, Mapping):
            findings = [findings]
        if not isinstance(findings, list):
            self._remarks.add(f"{mode.code}: its findings are no list, and were left out")
            return []
        left = MOST_FINDINGS - self._taken[mode.slug]
        if len(findings) > left:
            self._remarks.add(
                f"{mode.code} has more than {MOST_FINDINGS} findings: the first are taken"
            )
        self._taken[mode.slug] += len(findings)
        claims = []
        for finding in findings[: max(0, left)]:
            if isinstance(finding, Mapping):
                claims.append(self._claim(mode, finding))
            else:
                self._remarks.add(f"{mode.code}: a finding is no object, and was left out")
        return claims

    def _take(self, mode: Mode, verdict: VerdictValue | None, claims: list[Claim]) -> None:
        if claims and verdict is not VerdictValue.PRESENT:
            said = "without a verdict" if verdict is None else f"under '{verdict.value}'"
            self._remarks.add(f"{mode.code} has findings {said}: taken as present")
            verdict = VerdictValue.PRESENT
        if verdict is None:
            self._remarks.add(f"{mode.code} has no verdict that can be read")
            return
        placed = any(claim.mode == mode.slug for claim in self._claims.values())
        if verdict is VerdictValue.PRESENT and not claims and not placed:
            self._remarks.add(f"{mode.code} is present without a place")
            claims = [Claim(mode.slug, None, None, None, "", 0.5, None)]
        before = self._verdicts.get(mode.slug)
        if before is not None:
            self._remarks.add(f"{mode.code} was answered more than once")
            verdict = max(before, verdict, key=_RANK.index)
        self._verdicts[mode.slug] = verdict
        for claim in claims:
            key = (claim.mode, claim.first, claim.last, claim.quote)
            known = self._claims.get(key)
            if known is None or known.confidence < claim.confidence:
                self._claims[key] = claim

    def _claim(self, mode: Mode, finding: Mapping[str, object]) -> Claim:
        first, last = self._range(mode, finding)
        quote = as_text(finding.get("quote"))
        if len(quote) > QUOTE_CHARS:
            self._remarks.add(
                f"{mode.code}: a quote has more than {QUOTE_CHARS:,} characters, and was cut"
            )
        confidence = as_confidence(finding.get("confidence"))
        if confidence is None:
            self._remarks.add(f"{mode.code}: a confidence cannot be read, and counts as 0.5")
        return Claim(
            mode=mode.slug,
            first=first,
            last=last,
            quote=quote[:QUOTE_CHARS] if quote.strip() else None,
            rationale=as_text(finding.get("rationale")).strip()[:RATIONALE_CHARS],
            confidence=0.5 if confidence is None else confidence,
            decisive=as_decisive(finding.get("decisive")),
        )

    def _range(self, mode: Mode, finding: Mapping[str, object]) -> tuple[int | None, int | None]:
        """The indices of the range's ends as far as there are such spans."""
        said = [as_number(finding.get(end)) for end in ("first", "last")]
        named = [number for number in said if number is not None]
        there = sorted(number for number in named if 1 <= number <= self._spans)
        if len(there) < len(named):
            self._remarks.add(f"{mode.code} names a span that does not exist")
        if there != [number for number in named if number in there]:
            self._remarks.add(f"{mode.code}: a range was given backwards")
        return (there[0] - 1, there[-1] - 1) if there else (None, None)

    def _digest(self, value: Mapping[str, object]) -> str:
        if self._window.final:
            return ""
        digest = as_text(value.get("digest")).strip()
        if not digest:
            self._remarks.add("no summary for the part that follows")
        return digest[:DIGEST_CHARS]


def _unwrapped(value: Mapping[str, object]) -> Mapping[str, object]:
    """The object with the modes, where it is the only one within another."""
    inner = [entry for entry in value.values() if isinstance(entry, Mapping)]
    return inner[0] if "modes" not in value and len(inner) == 1 and "modes" in inner[0] else value


def _name_in(entry: object) -> object:
    if not isinstance(entry, Mapping):
        return None
    return next((entry[key] for key in ("mode", "code", "slug", "name") if key in entry), None)
