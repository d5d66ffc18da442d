"""Guards: conditions on runs that were tested against labels, in a file that people edit.

A guard consists of a condition, the mode that it detects, and its error rates on labelled runs that
it was not chosen on. The condition is a rule, or phrases that an agent must not say.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from mast_tui.errors import MastError
from mast_tui.judges.rules import GUARD_RULES, Rule
from mast_tui.judges.rules.speech import Saying, any_of
from mast_tui.judges.rules.walk import is_one_sentence, walk
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.toml_text import parse_toml
from mast_tui.traces.model import Trace

PHRASES: Final = "phrases"
"""The condition of guards that look for phrases."""

_RULE_BY_CONDITION: Final = {rule.name: rule for rule in GUARD_RULES}
_CONFIDENCE: Final = 0.6


class InvalidGuards(MastError):
    """An error of a file of guards."""


class TestedRates(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The error rates of a guard, on labelled runs that it was not chosen on.

    Args:
        runs: The runs without the failure.
        false_alarms: The runs without the failure in which the guard fires.
        false_alarm_bound: The upper bound of the share of false alarms; None without runs.
        failures: The runs with the failure.
        hits: The runs with the failure in which the guard fires.
        hit_interval: The ends of the interval of the share of hits; None without failures.
    """

    runs: Annotated[int, Meta(ge=0)]
    false_alarms: Annotated[int, Meta(ge=0)]
    false_alarm_bound: float | None = None
    failures: Annotated[int, Meta(ge=0)]
    hits: Annotated[int, Meta(ge=0)]
    hit_interval: tuple[float, float] | None = None


class Guard(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A guard; it runs only if it is ``on``."""

    name: Annotated[str, Meta(min_length=1, max_length=80)]
    condition: str
    mode: str
    on: bool
    note: str = ""
    phrases: tuple[Annotated[str, Meta(min_length=3, max_length=200)], ...] = ()
    tested: TestedRates | None = None

    @property
    def rule(self) -> Rule:
        """The rule of the guard.

        Raises:
            InvalidGuards: The condition is unknown or about another mode, or the phrases cannot be
                used.
        """
        if self.condition == PHRASES:
            if not self.phrases:
                raise InvalidGuards(f"guard {self.name!r} names no phrases")
            for phrase in self.phrases:
                if not is_one_sentence(phrase):
                    raise InvalidGuards(
                        f"guard {self.name!r}: the phrase {phrase!r} never matches, as phrases are "
                        "searched sentence by sentence; write each sentence as its own phrase"
                    )
            forbidden = any_of(*map(_escape_phrase, self.phrases))
            find = Saying(
                self.mode, forbidden, f"says what {self.name} forbids.", _CONFIDENCE, every=True
            )
            return Rule(self.name, self.mode, "phrases of an agent", find)
        rule = _RULE_BY_CONDITION.get(self.condition)
        if rule is None:
            raise InvalidGuards(
                f"guard {self.name!r}: there is no condition {self.condition!r}; there are "
                f"{', '.join([*_RULE_BY_CONDITION, PHRASES])}"
            )
        if rule.mode != self.mode:
            raise InvalidGuards(
                f"guard {self.name!r}: {self.condition} is about {rule.mode}, not {self.mode}"
            )
        return replace(rule, name=self.name, default=False)


class GuardsFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of guards; ``labels`` is the annotator of the labels that they were made from."""

    format: Literal["mast-tui guards"]
    version: Literal[1]
    taxonomy: str
    labels: str
    guards: tuple[Guard, ...] = ()

    def rules(self, modes: Iterable[str]) -> tuple[Rule, ...]:
        """Return the rules of the guards that are on.

        Args:
            modes: The slugs of all modes.

        Raises:
            InvalidGuards: No guard is on, or a guard has an unknown mode or an invalid condition.
        """
        slugs = set(modes)
        rules = [guard.rule for guard in self.guards if guard.on]
        for rule in rules:
            if rule.mode not in slugs:
                raise InvalidGuards(
                    f"guard {rule.name!r}: no mode has the slug {rule.mode!r}; there are "
                    f"{', '.join(sorted(slugs))}"
                )
        if not rules:
            raise InvalidGuards("no guard is on; see the note of each guard")
        return tuple(rules)


def read_guards(path: Path) -> GuardsFile:
    """Read a file of guards.

    Raises:
        InvalidGuards: The file cannot be read, or is no valid file of guards.
    """
    try:
        return msgspec.convert(parse_toml(path.read_text("utf-8")), GuardsFile)
    except OSError as error:
        raise InvalidGuards(f"{path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise InvalidGuards(f"{path}: {error}") from None


def read_rules(path: Path, taxonomy: Taxonomy, *, any_taxonomy: bool = False) -> tuple[Rule, ...]:
    """Return the rules of the guards in a file that are on.

    Args:
        path: The file.
        taxonomy: The taxonomy of the modes.
        any_taxonomy: True to allow guards of another taxonomy; their modes are not checked.

    Raises:
        InvalidGuards: The file cannot be read, is for another taxonomy, or has no valid guard that
            is on.
    """
    guards = read_guards(path)
    is_other = guards.taxonomy != taxonomy.ref
    if is_other and not any_taxonomy:
        raise InvalidGuards(f"{path}: its guards are for {guards.taxonomy}, not {taxonomy.ref}")
    try:
        own_modes = [guard.rule.mode for guard in guards.guards]
        return guards.rules(own_modes if is_other else [mode.slug for mode in taxonomy.modes])
    except InvalidGuards as error:
        raise InvalidGuards(f"{path}: {error}") from None


def guards_text(guards: GuardsFile) -> str:
    """Return the text of a file of guards."""
    head = {
        "format": guards.format,
        "version": guards.version,
        "taxonomy": guards.taxonomy,
        "labels": guards.labels,
    }
    lines = [_toml_line(key, value) for key, value in head.items()]
    for guard in guards.guards:
        values = msgspec.to_builtins(guard)
        tested = values.pop("tested", None)
        lines += ["", "[[guards]]", *(_toml_line(key, value) for key, value in values.items())]
        if tested is not None:
            lines.append("[guards.tested]")
            lines += [_toml_line(key, value) for key, value in tested.items() if value is not None]
    return "\n".join([*lines, ""])


def stop_reasons(rules: Sequence[Rule], trace: Trace, final_message: str) -> list[str]:
    """Return why a session must not end: the findings, with quotes, that end at its last message.

    Args:
        rules: The rules of the guards.
        trace: The session, read to its end.
        final_message: Its last message, which the file may not have yet.

    Raises:
        OSError: The source of the trace cannot be read.
    """
    trace_walk = walk(trace, final_message)
    last_message = trace_walk.last_message
    if last_message is None:
        return []
    # Earlier findings cannot be undone, so they are no reason to continue.
    findings = (finding for rule in rules for finding in rule.find(trace_walk))
    return [
        f"{finding.rationale} “{finding.evidence.quote}”"
        for finding in findings
        if finding.last == last_message.span.key and finding.evidence is not None
    ]


def _escape_phrase(phrase: str) -> str:
    return "".join(char if char.isalnum() or char in " '" else f"\\{char}" for char in phrase)


def _toml_line(key: str, value: object) -> str:
    # JSON of these values is valid TOML.
    return f"{key} = {json.dumps(value, ensure_ascii=False)}"
