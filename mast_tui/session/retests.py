"""The traces that a study lets come back to be labelled again.

Those come as ordinary work, without sight of the first time. Where somebody has meanwhile seen
what others said, or has looked at their own labels again to change them, a retest would measure
something else and falls away.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mast_tui.labels import Pass, PassKind
from mast_tui.study import Study, retest_traces, retests_due
from mast_tui.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Retests:
    """How far an annotator's retests have come, by trace id.

    ``due`` are not begun yet, those longest finished first; ``begun`` not finished. ``to_come``
    wait for the first reading or for others between; ``lost`` ones fell away.
    """

    due: tuple[str, ...] = ()
    begun: frozenset[str] = frozenset()
    done: frozenset[str] = frozenset()
    to_come: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()

    @property
    def now(self) -> frozenset[str]:
        """Those that are labelled anew now: of these nothing of the first time is shown."""
        return self.begun.union(self.due)

    @property
    def untaken(self) -> frozenset[str]:
        """Those for whose sake nothing is to be shown of what others say."""
        return self.now | self.to_come


def by_trace(passes: Iterable[Pass]) -> dict[str, list[Pass]]:
    """Passes of one annotator under one taxonomy, by trace id and number."""
    found: dict[str, list[Pass]] = defaultdict(list)
    for one in sorted(passes, key=lambda p: (p.trace_id, p.number)):
        found[one.trace_id].append(one)
    return found


def first_finish(own: Iterable[Pass]) -> str | None:
    """When somebody with these passes over a trace first finished it; None where they have not."""
    times = [one.finished_at for one in own if one.kind.is_reading and one.finished_at is not None]
    return min(times, default=None)


def retest_open(own: Sequence[Pass]) -> bool:
    """Whether a retest was begun and not finished; what comes after it ends it."""
    return bool(own) and own[-1].kind is PassKind.RETEST and not own[-1].finished


def retests_of(study: Study | None, annotator: str, own: Mapping[str, Sequence[Pass]]) -> Retests:
    """An annotator's retests, told by all of their passes (``by_trace``).

    One that was begun goes on whatever became of the study.
    """
    begun = frozenset(trace_id for trace_id, passes in own.items() if retest_open(passes))
    planned = frozenset(retest_traces(study, annotator)) if study is not None else frozenset()
    done, lost = set(), set()
    for trace_id in planned - begun:
        passes = own.get(trace_id, ())
        if any(one.kind is PassKind.RETEST and one.finished for one in passes):
            done.add(trace_id)
        elif any(_spoils(one) for one in passes):
            lost.add(trace_id)
    due: tuple[str, ...] = ()
    if study is not None and planned:
        times = {trace_id: first_finish(passes) for trace_id, passes in own.items()}
        order = sorted((at, trace_id) for trace_id, at in times.items() if at is not None)
        due = retests_due(
            study, annotator, [trace_id for _, trace_id in order], retested=begun | done | lost
        )
    return Retests(
        due=due,
        begun=begun,
        done=frozenset(done),
        to_come=planned - begun - done - lost - frozenset(due),
        lost=frozenset(lost),
    )


def _spoils(one: Pass) -> bool:
    return (
        one.kind in (PassKind.SECOND_LOOK, PassKind.ADJUDICATION, PassKind.RETEST)
        or one.revealed_at is not None
    )


def retest_progress(workspace: Workspace, annotator: str, taxonomy: str) -> Retests:
    """How far an annotator's retests have come under the study of a taxonomy (``id@version``)."""
    own = by_trace(workspace.passes(annotator=annotator, taxonomy=taxonomy))
    return retests_of(workspace.study(taxonomy), annotator, own)
