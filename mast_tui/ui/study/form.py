"""The fields of the form by which a study is set up: texts of a study, and a study of texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from mast_tui.errors import MastError
from mast_tui.safe_text import one_line

if TYPE_CHECKING:
    from mast_tui.study import Study

Texts = Mapping[str, str]
"""What stands in the fields, by their names."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field: a line to write on, or one of some choices."""

    name: str
    title: str
    help: str
    choices: tuple[str, ...] = ()


FIELDS: Final = (
    Field("annotators", "annotators", "Who labels: names with commas between them."),
    Field(
        "adjudicators",
        "adjudicators",
        "Who decides where annotators differ. May stay empty: then anybody may.",
    ),
    Field("per_trace", "per trace", "How many annotators label each trace of the overlap."),
    Field(
        "overlap",
        "overlap",
        "The share of traces that several label; each other trace has one annotator. Agreement "
        "is counted on the overlap.",
    ),
    Field(
        "sight",
        "sight",
        "Blind: judges' suggestions and outcomes are hidden until one finishes. Assisted: they are "
        "on screen.",
        ("blind", "assisted"),
    ),
    Field(
        "withheld",
        "withheld",
        "Assisted: the share of everybody's traces without suggestions until finished, drawn at "
        "random, so that their pull on people can be measured.",
    ),
    Field(
        "retests",
        "come back",
        "The share of everybody's finished traces that come back to be labelled once more, for "
        "agreement with oneself.",
    ),
    Field(
        "open_modes",
        "open modes",
        "What finishing with unread spans does with modes without a verdict. Left open they count "
        "in no figure.",
        ("ask", "leave", "absent"),
    ),
    Field(
        "names",
        "names",
        "Whether adjudication shows whose side is whose before a key asks for it.",
        ("hidden", "shown"),
    ),
    Field("seed", "seed", "Any whole number; it decides who labels what, and in which order."),
)


def texts_of(study: Study | None, people: Sequence[str]) -> dict[str, str]:
    """What the fields begin with: the study as it is, or what suits most for these people."""
    if study is None:
        return {
            "annotators": ", ".join(people),
            "adjudicators": "",
            "per_trace": "2",
            "overlap": "100 %",
            "sight": "blind",
            "withheld": "0 %",
            "retests": "0 %",
            "open_modes": "ask",
            "names": "hidden",
            "seed": "0",
        }
    return {
        "annotators": ", ".join(study.annotators),
        "adjudicators": ", ".join(study.adjudicators),
        "per_trace": str(study.per_trace),
        "overlap": share_text(study.overlap),
        "withheld": share_text(study.withheld),
        "retests": share_text(study.retests),
        "sight": "blind" if study.blind else "assisted",
        "open_modes": study.open_modes.value,
        "names": "hidden" if study.names_hidden else "shown",
        "seed": str(study.seed),
    }


def study_of(
    texts: Texts, *, taxonomy: str, before: Study | None, traces: Sequence[str] = ()
) -> Study:
    """The study that the fields describe; what has no field stays as it was ``before``.

    ``traces`` are those of a new study. Raises ``MastError`` in words that name the field.
    """
    from mast_tui.study import OpenModes, Study

    annotators = _names(texts["annotators"], "annotators")
    if not annotators:
        raise MastError("annotators: a study needs at least one")
    batches = (tuple(traces),) if traces else ()
    start = before or Study(taxonomy, annotators, batches=batches, per_trace=1)
    return replace(
        start,
        annotators=annotators,
        adjudicators=_names(texts["adjudicators"], "adjudicators"),
        per_trace=_whole(texts["per_trace"], "per trace"),
        overlap=_share(texts["overlap"], "overlap", start.overlap),
        withheld=_share(texts["withheld"], "withheld", start.withheld),
        retests=_share(texts["retests"], "come back", start.retests),
        blind=texts["sight"] == "blind",
        open_modes=OpenModes(texts["open_modes"]),
        names_hidden=texts["names"] == "hidden",
        seed=_whole(texts["seed"], "seed"),
    )


def share_text(share: float) -> str:
    """A share as a percentage: ``25 %``."""
    return f"{share * 100:.10g} %"


def _share(text: str, title: str, before: float) -> float:
    if text.strip() == share_text(before):
        return before
    found = re.fullmatch(r"\s*([0-9]{1,12}(?:[.,][0-9]{1,12})?)\s*(%?)\s*", text)
    if found is None:
        raise MastError(f"{title}: “{one_line(text, 20)}” is no share such as 25 %")
    value = float(found[1].replace(",", "."))
    if not found[2] and 0 < value <= 1:
        raise MastError(f"{title}: write {one_line(text, 12)} as a percentage, such as 25 %")
    if value > 100:
        raise MastError(f"{title}: {one_line(text, 20)} is more than all")
    return value / 100


def _whole(text: str, title: str) -> int:
    if not re.fullmatch(r"\s*-?[0-9]{1,15}\s*", text):
        raise MastError(f"{title}: “{one_line(text, 20)}” is no whole number")
    return int(text)


def _names(text: str, title: str) -> tuple[str, ...]:
    from mast_tui.labels import checked_person

    try:
        return tuple(checked_person(name) for name in text.split(",") if name.strip())
    except MastError as error:
        raise MastError(f"{title}: {error}") from error
