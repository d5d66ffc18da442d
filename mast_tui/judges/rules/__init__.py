"""The rules judge: offline, deterministic, without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from mast_tui.errors import MastError
from mast_tui.judges.rules import endings, invented, repetition
from mast_tui.judges.rules.walk import Walk, walk
from mast_tui.labels import Finding, Judgement
from mast_tui.traces.model import Trace

VERSION: Final = 5
RULES_PREFIX: Final = "judge:rules@"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that suggests a mode.

    Args:
        name: The name in ``--rules``.
        mode: The slug of the mode.
        sees: The pattern that it looks for, in a few words.
        find: Yields its findings in a trace.
        default: True if it runs by default; docs/lint.md states the conditions.
        needs_end: True if it is about the last steps, so that the run must be finished.
    """

    name: str
    mode: str
    sees: str
    find: Callable[[Walk], Iterator[Finding]]
    default: bool = False
    needs_end: bool = False


RULES: Final = (
    Rule(
        "repeated-call",
        repetition.MODE,
        "the same call with the same answer, and no change in between",
        repetition.find_same,
        default=True,
    ),
    Rule(
        "same-view",
        repetition.MODE,
        "a browsing agent does the same again and sees the same page",
        repetition.find_same_view,
        default=True,
    ),
    Rule(
        "repeated-message",
        repetition.MODE,
        "an agent repeats its own words",
        repetition.find_repeated_message,
    ),
    Rule(
        "limit",
        endings.UNAWARE_OF_TERMINATION,
        "a limit ends the run while the agent still works",
        endings.find_limit,
    ),
    Rule("invented-value", invented.MODE, "a call has a value that nobody gave", invented.find),
    Rule(
        "assumed-input",
        invented.MODE,
        "the agent assumes or simulates missing input",
        invented.find_assumed,
    ),
    Rule(
        "unsourced-figure",
        invented.MODE,
        "the agent reports figures that it never looked up",
        invented.find_unsourced,
    ),
    Rule(
        "early-end",
        endings.PREMATURE_TERMINATION,
        "the agent ends and says that the goal is not met",
        endings.find_early_end,
        needs_end=True,
    ),
    Rule(
        "failed-check",
        endings.INCORRECT_VERIFICATION,
        "the agent claims success, but the last check failed",
        endings.find_failed_check,
    ),
)
GUARD_RULES: Final = (
    *RULES,
    Rule(
        "unchecked-claim",
        endings.INCORRECT_VERIFICATION,
        "the agent claims success without a check after its last change",
        endings.find_unchecked_claim,
        needs_end=True,
    ),
    Rule(
        "open-plan",
        endings.PREMATURE_TERMINATION,
        "the agent ends with open steps in its last plan",
        endings.find_open_plan,
        needs_end=True,
    ),
)
"""The conditions of guards: all rules, and two that are too uncertain without qualification by
labels."""

DEFAULT: Final = tuple(rule for rule in RULES if rule.default)


def chosen_rules(names: str) -> tuple[Rule, ...]:
    """Return the rules for ``default``, ``all`` or ``NAME,NAME,…``, in the order of ``RULES``.

    Raises:
        MastError: No rule is named, or a named rule does not exist.
    """
    chosen_names = {name.strip() for name in names.split(",") if name.strip()}
    all_names = [rule.name for rule in RULES]
    unknown_names = chosen_names.difference(all_names, ("all", "default"))
    if unknown_names or not chosen_names:
        names_text = ", ".join(map(repr, sorted(unknown_names)))
        problem = f"no rule {names_text or 'named'}"
        raise MastError(f"{problem}; there are default, all, and {', '.join(all_names)}")
    if "all" in chosen_names:
        return RULES
    return tuple(
        rule
        for rule in RULES
        if rule.name in chosen_names or ("default" in chosen_names and rule.default)
    )


class RulesJudge:
    """A judge that suggests modes by patterns, with evidence, without a model.

    Its cost grows with the number of spans. Of a long text, it reads only the two ends.

    Args:
        rules: The rules to run.
    """

    def __init__(self, rules: Sequence[Rule] = DEFAULT) -> None:
        self.rules = tuple(rules)

    @property
    def name(self) -> str:
        """The annotator of its labels, which contains the names of its rules."""
        name = f"{RULES_PREFIX}{VERSION}"
        if self.rules == DEFAULT:
            return name
        if self.rules == RULES:
            return f"{name}+all"
        return "+".join([name, *(rule.name for rule in self.rules)])

    @property
    def covered_by(self) -> tuple[str, ...]:
        """The judge with all rules, which includes the verdicts of this judge; empty for itself."""
        return () if self.rules == RULES else (f"{RULES_PREFIX}{VERSION}+all",)

    @property
    def looks_at(self) -> tuple[str, ...]:
        """The slugs of the modes of its rules."""
        return tuple(dict.fromkeys(rule.mode for rule in self.rules))

    def judge(self, trace: Trace, /) -> Judgement:
        """Judge a trace whose index is complete.

        Raises:
            OSError: The source of the trace cannot be read.
        """
        return Judgement(tuple(finding for _, finding in self.findings(trace)))

    def findings(self, trace: Trace, /) -> list[tuple[Rule, Finding]]:
        """Return pairs of a rule and its finding in a trace, in reading order.

        Raises:
            OSError: The source of the trace cannot be read.
        """
        trace_walk = walk(trace)
        findings = [(rule, finding) for rule in self.rules for finding in rule.find(trace_walk)]
        index_by_key = {step.span.key: step.index for step in trace_walk.steps}

        def reading_order(item: tuple[Rule, Finding]) -> tuple[int, int, str]:
            """Return a sort key: the indices of the first and last span, then the mode."""
            _, finding = item
            assert finding.first is not None
            assert finding.last is not None
            return index_by_key[finding.first], index_by_key[finding.last], finding.mode

        return sorted(findings, key=reading_order)
