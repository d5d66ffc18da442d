"""Studies and guidelines as plain JSON values, and back."""

from __future__ import annotations

from mast_tui.gold.model import Guideline
from mast_tui.study.model import Membership, OpenModes, Release, Study
from mast_tui.workspace.events.fields import Fields
from mast_tui.workspace.events.values import Values, compact


def study_to_dict(study: Study) -> Values:
    """A study as plain values."""
    return {
        "taxonomy": study.taxonomy,
        "annotators": list(study.annotators),
        "adjudicators": list(study.adjudicators),
        "batches": [{"traces": list(batch)} for batch in study.batches],
        "per_trace": study.per_trace,
        "overlap": float(study.overlap),
        "seed": study.seed,
        "blind": study.blind,
        "withheld": float(study.withheld),
        "retests": float(study.retests),
        "open_modes": study.open_modes.value,
        "names_hidden": study.names_hidden,
        "judge_first": study.judge_first,
        "boundaries": study.boundaries,
        "reasons": study.reasons,
        **compact(
            {
                "memberships": [one._asdict() for one in study.memberships],
                "releases": [
                    {"annotator": one.annotator, "traces": list(one.traces)}
                    for one in study.releases
                ],
            }
        ),
    }


def study_from(fields: Fields) -> Study:
    """The study; raises ``ValueError`` where something is missing or cannot be."""
    return Study(
        taxonomy=fields.text("taxonomy"),
        annotators=fields.texts("annotators"),
        adjudicators=fields.texts("adjudicators"),
        batches=tuple(batch.texts("traces") for batch in fields.children("batches")),
        per_trace=fields.whole("per_trace"),
        overlap=fields.number("overlap"),
        seed=fields.whole("seed"),
        blind=fields.flag("blind"),
        withheld=fields.number("withheld"),
        retests=fields.number("retests"),
        open_modes=fields.word("open_modes", OpenModes),
        names_hidden=fields.flag("names_hidden"),
        judge_first=fields.flag("judge_first"),
        boundaries=fields.flag("boundaries"),
        reasons=fields.flag("reasons"),
        memberships=tuple(
            Membership(one.text("annotator"), one.whole("first"), one.whole_or_none("end"))
            for one in fields.children("memberships")
        ),
        releases=tuple(
            Release(one.text("annotator"), one.texts("traces"))
            for one in fields.children("releases")
        ),
    )


def guideline_to_dict(guideline: Guideline) -> Values:
    """A guideline as plain values."""
    return {
        "id": guideline.id,
        "mode": guideline.mode,
        "text": guideline.text,
        "written_by": guideline.written_by,
        "written_at": guideline.written_at,
        **compact({"trace_id": guideline.trace_id, "item": guideline.item}),
    }


def guideline_from(fields: Fields) -> Guideline:
    """The guideline; raises ``ValueError`` where something is missing or cannot be."""
    return Guideline(
        id=fields.text("id"),
        mode=fields.text("mode"),
        text=fields.text("text"),
        written_by=fields.text("written_by"),
        written_at=fields.text("written_at"),
        trace_id=fields.text_or_none("trace_id"),
        item=fields.text_or_none("item"),
    )
