"""Corrections of a model judge by people, and the versions of its prompt that contain them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import msgspec

from mast_tui.errors import MastError
from mast_tui.judges.llm.prompt.few_shot import (
    ExampleMaker,
    ExampleSource,
    TraceLookup,
    choice_parameters,
)
from mast_tui.judges.llm.prompt.prompt import Example
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.labels import VerdictValue
from mast_tui.redaction.engine import Redaction
from mast_tui.workspace import Workspace

Record = TypeVar("Record")

_MISTAKES_SETTING: Final = "judge.mistakes"
_VERSIONS_SETTING: Final = "judge.versions"
_DEFAULTS_SETTING: Final = "judge.defaults"
_TESTS_SETTING: Final = "judge.tests"
"""The settings of a workspace, each followed by the name of a taxonomy."""


class MarkedMistake(msgspec.Struct, frozen=True):
    """A verdict of a judge that a person marked as wrong, with the reason."""

    judge: str
    trace_id: str
    mode: str
    reason: str
    marked_by: str
    marked_at: str


class JudgeVersion(msgspec.Struct, frozen=True):
    """A taught version of a judge: another judge with additions to its prompt.

    Attributes:
        judge: The name of the version.
        parent: The name of the judge that it was made from.
        guidelines: Pairs of a mode's slug and a text.
        examples: The examples.
        choices: The origins of the examples, as the record of a run stores them.
        made_by: The person who made the version.
        made_at: The time when it was made.
    """

    judge: str
    parent: str
    guidelines: tuple[tuple[str, str], ...]
    examples: tuple[Example, ...]
    choices: tuple[str, ...]
    made_by: str
    made_at: str

    def applied_to(self, setup: Setup) -> Setup:
        """Return a setup with the guidelines and examples of this version."""
        return with_chosen_examples(with_guidelines(setup, self.guidelines), self.examples)


class TestUse(msgspec.Struct, frozen=True):
    """The measurement of a version of a judge on held-out traces, by their ids."""

    judge: str
    traces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JudgeError(ExampleSource):
    """A wrong verdict of a judge on a mode, as a source of an example with the right verdict.

    The target and the quote are those of people's label; if the mode is absent, those of the
    judge's label.

    Attributes:
        marked_by_person: True if a person marked the error.
        agreed: True if several people agree on the verdict, or if it was adjudicated.
        stratum: The kind of trace, such as its system and length.
    """

    marked_by_person: bool = False
    agreed: bool = True
    stratum: str = ""


def most_informative(errors: Iterable[JudgeError]) -> list[JudgeError]:
    """Return errors in the order of how much they teach, without errors on whole traces.

    1. Errors that a person marked come first, then errors on which people agree.
    2. Each mode and verdict gets a share of the positions in proportion to its number of errors.
    3. The least used strata (kinds of traces) come first, then the least used traces.
    """
    # An example shows spans, so errors on whole traces make none.
    remaining = sorted(
        (error for error in errors if not error.target.is_whole),
        key=lambda error: (error.choice.trace_id, error.choice.mode),
    )
    total_by_kind = Counter((error.choice.mode, error.choice.verdict) for error in remaining)
    count_by_kind: Counter[tuple[str, VerdictValue]] = Counter()
    count_by_stratum: Counter[str] = Counter()
    count_by_trace: Counter[str] = Counter()

    def order_key(error: JudgeError) -> tuple[bool, bool, float, int, int]:
        """Return the sort key of an error; the error with the lowest key is next."""
        kind = (error.choice.mode, error.choice.verdict)
        return (
            not error.marked_by_person,
            not error.agreed,
            # The method of Sainte-Laguë, which distributes seats to parties.
            (2 * count_by_kind[kind] + 1) / total_by_kind[kind],
            count_by_stratum[error.stratum],
            count_by_trace[error.choice.trace_id],
        )

    ordered_errors = []
    while remaining:
        error = min(remaining, key=order_key)
        remaining.remove(error)
        count_by_kind[error.choice.mode, error.choice.verdict] += 1
        count_by_stratum[error.stratum] += 1
        count_by_trace[error.choice.trace_id] += 1
        ordered_errors.append(error)
    return ordered_errors


def examples_of(
    sources: Iterable[ExampleSource],
    find_trace: TraceLookup,
    redaction: Redaction,
    *,
    count: int,
    may_use: Callable[[str], bool],
) -> tuple[Example, ...]:
    """Make examples of verdicts.

    Args:
        sources: The verdicts, in the order of preference.
        find_trace: Returns a trace by its id.
        redaction: The redaction of the examples.
        count: The most examples.
        may_use: Checks whether a prompt may show a trace.

    Raises:
        OSError: The file of a trace could not be read.
    """
    usable_sources = (source for source in sources if may_use(source.choice.trace_id))
    return tuple(ExampleMaker(find_trace, redaction).make(usable_sources, count))


def with_guidelines(setup: Setup, guidelines: Sequence[tuple[str, str]]) -> Setup:
    """Add guidelines to the prompt of a setup, and their number and hash to the record of its runs.

    Args:
        setup: The setup.
        guidelines: Pairs of a mode's slug and a text.
    """
    if not guidelines:
        return setup
    digest = hashlib.sha256(msgspec.json.encode(guidelines)).hexdigest()[:8]
    noted = (*setup.noted, ("guidelines", f"{len(guidelines)}, {digest}"))
    return replace(setup, guidelines=tuple(guidelines), noted=noted)


def with_chosen_examples(setup: Setup, examples: tuple[Example, ...]) -> Setup:
    """Add examples to the prompt of a setup, and their origins to the record of its runs.

    Args:
        setup: The setup.
        examples: The examples.
    """
    noted = (*setup.noted, *choice_parameters(examples))
    return replace(setup, examples=examples, noted=noted)


def guidelines_of(workspace: Workspace, taxonomy_ref: str) -> tuple[tuple[str, str], ...]:
    """Return the guidelines that people wrote, as pairs of a mode's slug and a text.

    Args:
        workspace: The workspace.
        taxonomy_ref: The id and version of the taxonomy.
    """
    return tuple(
        (guideline.mode, guideline.text) for guideline in workspace.guidelines(taxonomy_ref)
    )


def mistakes(workspace: Workspace, taxonomy_ref: str) -> tuple[MarkedMistake, ...]:
    """Return the marked mistakes of all judges, the earliest first.

    Args:
        workspace: The workspace.
        taxonomy_ref: The id and version of the taxonomy.
    """
    return _read_records(
        workspace, f"{_MISTAKES_SETTING}:{taxonomy_ref}", tuple[MarkedMistake, ...]
    )


def mark_mistake(workspace: Workspace, taxonomy_ref: str, mistake: MarkedMistake) -> None:
    """Mark a verdict of a judge as wrong; an empty reason removes the mark.

    Args:
        workspace: The workspace.
        taxonomy_ref: The id and version of the taxonomy.
        mistake: The mark; it replaces an earlier mark of the same verdict.
    """
    subject = (mistake.judge, mistake.trace_id, mistake.mode)
    with workspace.transaction():
        marks = [
            mark
            for mark in mistakes(workspace, taxonomy_ref)
            if (mark.judge, mark.trace_id, mark.mode) != subject
        ]
        if mistake.reason:
            marks.append(mistake)
        _write_records(workspace, f"{_MISTAKES_SETTING}:{taxonomy_ref}", marks)


def versions(workspace: Workspace, taxonomy_ref: str) -> Mapping[str, JudgeVersion]:
    """Return the taught versions of judges by name.

    Args:
        workspace: The workspace.
        taxonomy_ref: The id and version of the taxonomy.
    """
    stored = _read_records(
        workspace, f"{_VERSIONS_SETTING}:{taxonomy_ref}", tuple[JudgeVersion, ...]
    )
    return {version.judge: version for version in stored}


def keep_version(workspace: Workspace, taxonomy_ref: str, version: JudgeVersion) -> None:
    """Store a taught version of a judge unless a version of this name is stored.

    Args:
        workspace: The workspace.
        taxonomy_ref: The id and version of the taxonomy.
        version: The version.
    """
    with workspace.transaction():
        stored = versions(workspace, taxonomy_ref)
        if version.judge not in stored:
            _write_records(
                workspace, f"{_VERSIONS_SETTING}:{taxonomy_ref}", [*stored.values(), version]
            )


def record_test(workspace: Workspace, taxonomy_ref: str, judge: str, traces: Sequence[str]) -> int:
    """Record the first measurement of a version of a judge on held-out traces.

    Args:
        workspace: The workspace.
        taxonomy_ref: The id and version of the taxonomy.
        judge: The name of the version.
        traces: The ids of the traces.

    Returns:
        The number of versions that were measured before on some of these traces.
    """
    setting = f"{_TESTS_SETTING}:{taxonomy_ref}"
    with workspace.transaction():
        uses = _read_records(workspace, setting, tuple[TestUse, ...])
        earlier_count = 0
        for use in uses:
            if use.judge == judge:
                return earlier_count
            earlier_count += not set(use.traces).isdisjoint(traces)
        _write_records(workspace, setting, [*uses, TestUse(judge, tuple(traces))])
    return earlier_count


def default_judge(workspace: Workspace, taxonomy_ref: str) -> str | None:
    """Return the name of the default judge, or None without a default.

    Args:
        workspace: The workspace.
        taxonomy_ref: The id and version of the taxonomy.
    """
    default_history = _read_records(
        workspace, f"{_DEFAULTS_SETTING}:{taxonomy_ref}", tuple[str, ...]
    )
    return default_history[-1] if default_history else None


def default_version(workspace: Workspace, taxonomy_ref: str) -> JudgeVersion | None:
    """Return the default judge if it is a taught version, otherwise None.

    Args:
        workspace: The workspace.
        taxonomy_ref: The id and version of the taxonomy.
    """
    judge = default_judge(workspace, taxonomy_ref)
    return None if judge is None else versions(workspace, taxonomy_ref).get(judge)


def make_default(workspace: Workspace, taxonomy_ref: str, judge: str) -> None:
    """Make a judge the default for a taxonomy.

    Args:
        workspace: The workspace.
        taxonomy_ref: The id and version of the taxonomy.
        judge: The name of a taught version, or of the judge that it was made from.

    Raises:
        MastError: The judge is another one.
    """
    taught = versions(workspace, taxonomy_ref)
    if judge not in taught.keys() | {version.parent for version in taught.values()}:
        raise MastError("only a taught version, or the judge before it, can be the default")
    setting = f"{_DEFAULTS_SETTING}:{taxonomy_ref}"
    with workspace.transaction():
        default_history = _read_records(workspace, setting, tuple[str, ...])
        # A second call must not hide the previous default.
        if not default_history or default_history[-1] != judge:
            _write_records(workspace, setting, [*default_history, judge])


def restore_default(workspace: Workspace, taxonomy_ref: str) -> str | None:
    """Make the previous default the default again.

    Args:
        workspace: The workspace.
        taxonomy_ref: The id and version of the taxonomy.

    Returns:
        The new default, or None if no earlier default is stored.

    Raises:
        MastError: No judge was made the default.
    """
    setting = f"{_DEFAULTS_SETTING}:{taxonomy_ref}"
    with workspace.transaction():
        default_history = _read_records(workspace, setting, tuple[str, ...])
        if not default_history:
            raise MastError("no version was made the default, so there is none to go back to")
        _write_records(workspace, setting, default_history[:-1])
    return default_history[-2] if len(default_history) > 1 else None


def _read_records(
    workspace: Workspace, setting: str, kind: type[tuple[Record, ...]]
) -> tuple[Record, ...]:
    stored = workspace.get_setting(setting)
    return () if stored is None else msgspec.json.decode(stored, type=kind)


def _write_records(workspace: Workspace, setting: str, records: Sequence[object]) -> None:
    workspace.set_setting(setting, msgspec.json.encode(records).decode())
