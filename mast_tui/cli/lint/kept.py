"""What a judge has found before: its suggestions in a workspace, read and never changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from mast_tui.cli.agree.input import judge_named
from mast_tui.cli.lint.findings import PlacedFinding, placed
from mast_tui.errors import MastError
from mast_tui.labels import Doubt, Finding, Label
from mast_tui.traces.library import read_fully
from mast_tui.workspace import TraceRecord

if TYPE_CHECKING:
    from mast_tui.cli.lint.gate import Gate
    from mast_tui.taxonomy.model import Mode, Taxonomy
    from mast_tui.traces.model import Trace
    from mast_tui.workspace import Workspace

_DOUBTS: Final = {
    Doubt.NONE: "",
    Doubt.ALTERED: " (quote altered)",
    Doubt.NOT_FOUND: " (quote not found in the trace)",
}


class NotJudged(MastError):
    """A judge has not looked at a trace as it is now."""


class KeptFindings:
    """Gives what a judge has suggested in traces, as a workspace keeps it."""

    def __init__(self, place: Workspace, name: str, gate: Gate, taxonomy: Taxonomy) -> None:
        """Find the judge.

        Args:
            place: The workspace.
            name: The judge's name, or enough of its beginning; ``judge:`` may be left out.
            gate: Tells what fails.
            taxonomy: Of which its suggestions are.

        Raises:
            click.ClickException: There is no such judge, or several.
            click.UsageError: It looks for none of the modes that are to fail.
        """
        self.judge = judge_named(place, name)
        self._place = place
        self._gate = gate
        self._taxonomy = taxonomy
        judgements = place.judgements(annotator=self.judge, taxonomy=taxonomy.ref)
        seen = {slug for one in judgements for slug in one.looks_at}
        self.modes: Sequence[Mode] = [mode for mode in taxonomy.modes if mode.slug in seen]
        for slug in gate.modes:
            if slug not in seen:
                raise click.UsageError(
                    f"--fail-on {taxonomy.mode(slug).code}: {self.judge} does not look for it"
                )

    def of(self, trace: Trace, /) -> Sequence[PlacedFinding]:
        """Tell what was found in a trace.

        Raises:
            NotJudged: The judge has not looked at it, or it has grown since.
            OSError: The trace cannot be read.
        """
        read_fully(trace)
        now = TraceRecord.of(trace)
        known = self._place.find_trace(now)
        judge, ref = self.judge, self._taxonomy.ref
        if known is None or not self._place.judgements(
            trace_id=known.trace_id, annotator=judge, taxonomy=ref
        ):
            raise NotJudged(f"{self.judge} has not judged it; run 'mast-tui judge' first")
        if known.spans is not None and known.spans != now.spans:
            raise NotJudged(f"it has grown since {self.judge} has judged it; run it again")
        labels = self._place.labels(trace_id=known.trace_id, annotator=judge, taxonomy=ref)
        found = [
            placed(trace, None, _finding(label), self._gate, self._taxonomy) for label in labels
        ]
        return sorted(found, key=lambda one: (one.first, one.last, one.mode.code))


def _finding(label: Label) -> Finding:
    doubt = "" if label.evidence is None else _DOUBTS[label.evidence.doubt]
    return Finding(
        label.mode,
        label.target.first,
        label.target.last,
        f"{label.note}{doubt}",
        1.0 if label.confidence is None else label.confidence,
        label.decisive,
        label.evidence,
    )
