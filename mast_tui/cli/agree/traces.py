"""The traces behind the figures of one mode, the disagreements first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from mast_tui.cli.agree.input import Wanted, judge_input, study_input
from mast_tui.cli.shared.common import print_json, print_table
from mast_tui.figures.agreement.drill_down import traces_behind
from mast_tui.figures.judge.confusion import cases_behind, compared
from mast_tui.safe_text import one_line

if TYPE_CHECKING:
    from mast_tui.labels import VerdictValue
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace


def print_traces(document: Mapping[str, Any], *, as_json: bool) -> None:
    """Print who said what of a mode, the disagreements first.

    Args:
        document: What ``traces_document`` made.
        as_json: Print the document itself.
    """
    if as_json:
        print_json(document)
        return
    click.echo(one_line(f"{document['mode']} {document['name']}: {_summary(document)}"))
    if document["traces"]:
        names = document["annotators"]
        rows = [("", "trace", *names)]
        rows += [
            (
                "≠" if one["disagreement"] else "",
                one["trace"],
                *(_word(one["said"], name) for name in names),
            )
            for one in document["traces"]
        ]
        print_table(rows, numbers_from=2 + len(names))


def traces_document(
    workspace: Workspace, taxonomy: Taxonomy, wanted: Wanted, text: str
) -> dict[str, Any]:
    """Gather who said what of a mode in the traces that its figures rest on.

    With a judge these are the traces on which it can be compared, its errors first.

    Args:
        workspace: Where to look.
        taxonomy: The taxonomy of the mode.
        wanted: Who is compared, and on which traces.
        text: The mode, as people name it.

    Raises:
        click.ClickException: The taxonomy has no such mode.
    """
    mode = taxonomy.find(text)
    if mode is None:
        codes = ", ".join(one.code for one in taxonomy.modes)
        raise click.ClickException(f"{taxonomy.ref} has no mode {text!r}; there are: {codes}")
    judged = judge_input(workspace, taxonomy, wanted)
    if judged is None:
        study = study_input(workspace, taxonomy, wanted)
        names: Sequence[str] = study.annotators
        traces = [
            {
                "trace": one.trace_id,
                "disagreement": one.disagreement,
                "said": {name: _value(value) for name, value in one.said.items()},
            }
            for one in traces_behind(study, mode.slug)
        ]
    else:
        names = (judged.judge, judged.reference.name)
        traces = [
            {
                "trace": case.trace_id,
                "disagreement": float(case.differs),
                "said": {
                    name: "present" if present else "absent"
                    for name, present in zip(names, (case.judge, case.reference), strict=True)
                },
            }
            for case in cases_behind(compared(judged), mode.slug)
        ]
    return {
        "taxonomy": taxonomy.ref,
        "pass": "1" if wanted.which == "first" else "last",
        "mode": mode.code,
        "slug": mode.slug,
        "name": mode.name,
        "annotators": list(names),
        "traces": traces,
    }


def _value(value: VerdictValue | None) -> str | None:
    return None if value is None else value.value


def _summary(document: Mapping[str, Any]) -> str:
    """How many traces there are, and on how many of them they differ."""
    traces = document["traces"]
    if not traces:
        return "no trace has a verdict on it by two of those who are compared"
    differing = sum(one["disagreement"] > 0 for one in traces)
    return f"{len(traces)} traces, {differing} with a disagreement"


def _word(said: Mapping[str, str | None], name: str) -> str:
    """What somebody said: nothing where they have not finished the trace."""
    return (said[name] or "open") if name in said else "—"
