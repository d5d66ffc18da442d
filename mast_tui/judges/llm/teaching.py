"""Corrections of a model judge by people, and the versions of its prompt that follow from them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import msgspec

from mast_tui.errors import MastError
from mast_tui.judges.llm.prompt.few_shot import (
    ChosenExamples,
    ExampleChoice,
    ExampleMaker,
    ExampleSource,
    TraceLookup,
    choice_parameters,
)
from mast_tui.judges.llm.prompt.prompt import Example
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.labels import Target, VerdictValue
from mast_tui.redaction.engine import Redaction
from mast_tui.workspace import Workspace

Record = TypeVar("Record")

_MISTAKES: Final = "judge.mistakes"
_VERSIONS: Final = "judge.versions"
_DEFAULTS: Final = "judge.defaults"
_TESTS: Final = "judge.tests"
"""The settings of a workspace, each followed by the name of a taxonomy."""


class TeachingError(MastError):
    """A judge cannot be taught or changed; the message says why."""


class MarkedMistake(msgspec.Struct, frozen=True):
    """A verdict of a judge that a person has marked as wrong, with the reason."""

    judge: str
    trace_id: str
    mode: str
    reason: str
    marked_by: str
    marked_at: str


class JudgeVersion(msgspec.Struct, frozen=True):
    """A judge that was taught: the additions to its prompt, and the judge that it comes from.

    ``guidelines`` are pairs of a mode's slug and a text. ``choices`` are the subjects of
    ``examples``, as the record of a run has them.
    """

    judge: str
    parent: str
    guidelines: tuple[tuple[str, str], ...]
    examples: tuple[Example, ...]
    choices: tuple[str, ...]
    made_by: str
    made_at: str

    def examples_with_choices(self) -> ChosenExamples:
        """Return the examples with their subjects."""
        choices = map(ExampleChoice.parse, self.choices)
        return tuple(zip(choices, self.examples, strict=True))

    def applied_to(self, setup: Setup) -> Setup:
        """Return a setup with the guidelines and examples of this version."""
        return with_chosen(with_guidelines(setup, self.guidelines), self.examples_with_choices())


class TestUse(msgspec.Struct, frozen=True):
    """The measurement of a version on held-out traces."""

    judge: str
    traces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JudgeError:
    """A verdict on a mode that a judge got wrong, and what is right.

    ``right`` is the verdict of people. ``target`` is the place of their label. If the mode is
    absent, it is the place of the judge's label, and ``quote`` is the text that the judge quotes.
    ``marked_by_person`` is true if a person has marked the error, ``agreed`` if several people
    agree on the verdict or it was adjudicated. ``stratum`` names the kind of trace, such as its
    system and length.
    """

    trace_id: str
    mode: str
    right: VerdictValue
    target: Target
    reason: str
    quote: str | None = None
    marked_by_person: bool = False
    agreed: bool = True
    stratum: str = ""


def most_informative(errors: Iterable[JudgeError]) -> list[JudgeError]:
    """Order errors by how much they teach.

    Marked errors come first, then those on which people agree. Within both, each kind of error (a
    mode that is missed, or reported in error) has a share of the places by its number of errors,
    and the kinds of traces that were used least come first, then the traces. Errors without a
    place in the trace are left out, because an example shows spans.
    """
    remaining = sorted(
        (error for error in errors if not error.target.is_whole),
        key=lambda error: (error.trace_id, error.mode),
    )
    errors_of_kind = Counter((error.mode, error.right) for error in remaining)
    used: Counter[tuple[str, VerdictValue]] = Counter()
    strata: Counter[str] = Counter()
    traces: Counter[str] = Counter()
    ordered = []
    while remaining:
        error = min(
            remaining,
            key=lambda each: (
                not each.marked_by_person,
                not each.agreed,
                # As seats are dealt to parties by Sainte-Laguë.
                (2 * used[each.mode, each.right] + 1) / errors_of_kind[each.mode, each.right],
                strata[each.stratum],
                traces[each.trace_id],
            ),
        )
        remaining.remove(error)
        used[error.mode, error.right] += 1
        strata[error.stratum] += 1
        traces[error.trace_id] += 1
        ordered.append(error)
    return ordered


def examples_of(
    errors: Iterable[JudgeError],
    find_trace: TraceLookup,
    redaction: Redaction,
    *,
    count: int,
    may_use: Callable[[str], bool],
) -> ChosenExamples:
    """Make examples of errors.

    Args:
        errors: The errors in their order.
        find_trace: Returns a trace by its id.
        redaction: The redaction of the examples.
        count: The most examples.
        may_use: Tells whether a prompt may show a trace; others are not read.

    Raises:
        OSError: The file of a trace could not be read.
    """
    sources = (
        ExampleSource(
            ExampleChoice(error.mode, error.right, error.trace_id),
            error.target,
            error.reason,
            error.quote,
        )
        for error in errors
        if may_use(error.trace_id)
    )
    return tuple(ExampleMaker(find_trace, redaction).make(sources, count))


def with_guidelines(setup: Setup, guidelines: Sequence[tuple[str, str]]) -> Setup:
    """Return a setup whose prompt has guidelines; the run's record has their number and hash.

    Args:
        setup: The setup.
        guidelines: Pairs of a mode's slug and a text.
    """
    if not guidelines:
        return setup
    digest = hashlib.sha256(msgspec.json.encode(guidelines)).hexdigest()[:8]
    noted = (*setup.noted, ("guidelines", f"{len(guidelines)}, {digest}"))
    return replace(setup, guidelines=tuple(guidelines), noted=noted)


def with_chosen(setup: Setup, chosen: ChosenExamples) -> Setup:
    """Return a setup whose prompt has examples; the run's record has their subjects.

    Args:
        setup: The setup.
        chosen: The examples.
    """
    return replace(
        setup,
        examples=tuple(example for _, example in chosen),
        noted=(*setup.noted, *choice_parameters(chosen)),
    )


def guidelines_of(workspace: Workspace, taxonomy_ref: str) -> tuple[tuple[str, str], ...]:
    """Return the guidelines that people have written, as pairs of a mode's slug and a text.

    Args:
        workspace: The workspace.
        taxonomy_ref: The taxonomy of the modes.
    """
    return tuple((each.mode, each.text) for each in workspace.guidelines(taxonomy_ref))


def mistakes(workspace: Workspace, taxonomy_ref: str) -> tuple[MarkedMistake, ...]:
    """Return the marked mistakes of all judges, the earliest first.

    Args:
        workspace: The workspace.
        taxonomy_ref: The taxonomy of the modes.
    """
    return _read(workspace, f"{_MISTAKES}:{taxonomy_ref}", tuple[MarkedMistake, ...], ())


def mark_mistake(workspace: Workspace, taxonomy_ref: str, mistake: MarkedMistake) -> None:
    """Mark a verdict of a judge as wrong; an empty reason removes the mark.

    Args:
        workspace: The workspace.
        taxonomy_ref: The taxonomy of the mode.
        mistake: The mark, which replaces an earlier one of the same verdict.
    """
    subject = (mistake.judge, mistake.trace_id, mistake.mode)
    with workspace.transaction():
        marked = [
            each
            for each in mistakes(workspace, taxonomy_ref)
            if (each.judge, each.trace_id, each.mode) != subject
        ]
        marked += [mistake] if mistake.reason else []
        _write(workspace, f"{_MISTAKES}:{taxonomy_ref}", marked)


def versions(workspace: Workspace, taxonomy_ref: str) -> Mapping[str, JudgeVersion]:
    """Return the versions that were made by teaching, by the name of the judge.

    Args:
        workspace: The workspace.
        taxonomy_ref: The taxonomy of the modes.
    """
    stored = _read(workspace, f"{_VERSIONS}:{taxonomy_ref}", tuple[JudgeVersion, ...], ())
    return {version.judge: version for version in stored}


def keep_version(workspace: Workspace, taxonomy_ref: str, version: JudgeVersion) -> None:
    """Keep a version; one of the same name stays as it is.

    Args:
        workspace: The workspace.
        taxonomy_ref: The taxonomy of the modes.
        version: The version.
    """
    with workspace.transaction():
        stored = versions(workspace, taxonomy_ref)
        if version.judge not in stored:
            _write(workspace, f"{_VERSIONS}:{taxonomy_ref}", [*stored.values(), version])


def record_test(workspace: Workspace, taxonomy_ref: str, judge: str, traces: Sequence[str]) -> int:
    """Record that a version was measured on held-out traces.

    Args:
        workspace: The workspace.
        taxonomy_ref: The taxonomy of the modes.
        judge: The version.
        traces: The ids of the traces.

    Returns:
        How many other versions were measured on some of these traces before.
    """
    setting = f"{_TESTS}:{taxonomy_ref}"
    with workspace.transaction():
        uses = _read(workspace, setting, tuple[TestUse, ...], ())
        earlier = 0
        for use in uses:
            if use.judge == judge:
                break
            earlier += not set(use.traces).isdisjoint(traces)
        else:
            _write(workspace, setting, [*uses, TestUse(judge, tuple(traces))])
    return earlier


def default_judge(workspace: Workspace, taxonomy_ref: str) -> str | None:
    """Return the judge that was made the default, or None.

    Args:
        workspace: The workspace.
        taxonomy_ref: The taxonomy of the modes.
    """
    chosen = _read(workspace, f"{_DEFAULTS}:{taxonomy_ref}", tuple[str, ...], ())
    return chosen[-1] if chosen else None


def default_version(workspace: Workspace, taxonomy_ref: str) -> JudgeVersion | None:
    """Return the version that was made the default; None for the judge of the configuration.

    Args:
        workspace: The workspace.
        taxonomy_ref: The taxonomy of the modes.
    """
    judge = default_judge(workspace, taxonomy_ref)
    return None if judge is None else versions(workspace, taxonomy_ref).get(judge)


def make_default(workspace: Workspace, taxonomy_ref: str, judge: str) -> None:
    """Make a judge the default.

    Args:
        workspace: The workspace.
        taxonomy_ref: The taxonomy of the modes.
        judge: The judge: a version, or the one that a version comes from.
    """
    setting = f"{_DEFAULTS}:{taxonomy_ref}"
    with workspace.transaction():
        chosen = _read(workspace, setting, tuple[str, ...], ())
        if not chosen or chosen[-1] != judge:
            _write(workspace, setting, [*chosen, judge])


def restore_default(workspace: Workspace, taxonomy_ref: str) -> str | None:
    """Go back to the default before the last one.

    Args:
        workspace: The workspace.
        taxonomy_ref: The taxonomy of the modes.

    Returns:
        The judge that is the default now, or None if it is the judge of the configuration.

    Raises:
        TeachingError: No judge was made the default.
    """
    setting = f"{_DEFAULTS}:{taxonomy_ref}"
    with workspace.transaction():
        chosen = _read(workspace, setting, tuple[str, ...], ())
        if not chosen:
            raise TeachingError("no version was made the default, so there is none to go back to")
        _write(workspace, setting, chosen[:-1])
    return chosen[-2] if len(chosen) > 1 else None


def _read(workspace: Workspace, setting: str, kind: type[Record], default: Record) -> Record:
    stored = workspace.get_setting(setting)
    return default if stored is None else msgspec.json.decode(stored, type=kind)


def _write(workspace: Workspace, setting: str, records: Sequence[object]) -> None:
    workspace.set_setting(setting, msgspec.json.encode(records).decode())
