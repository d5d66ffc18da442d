"""The format ``codebook``: the modes with their definitions, guidelines and decided cases.

It is Markdown or a part of a LaTeX document, for the appendix of a paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mast_tui.reports.render.markdown import plain
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode, Taxonomy

Values = Mapping[str, Any]

_LATEX: Final = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "%": r"\%",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\char34{}",
        "›": r"\guilsinglright{}",
    }
)
_HEADINGS: Final = ("section", "subsection", "subsubsection")


@dataclass(frozen=True, slots=True)
class _Heading:
    """A heading. ``level`` counts from 0."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class _List:
    """A list with a title. Without items it is left out."""

    title: str
    items: Sequence[str]


_CodebookPart = _Heading | _List | str


def codebook_text(taxonomy: Taxonomy, guidelines: Values, *, latex: bool) -> str:
    """Return the codebook as Markdown or LaTeX.

    Args:
        taxonomy: The taxonomy.
        guidelines: The guidelines and cases by the code of the mode.
        latex: Write LaTeX sections for ``\\input`` instead of Markdown.
    """
    write = _as_latex if latex else _as_markdown
    parts = _codebook_parts(taxonomy, guidelines)
    shown_parts = (part for part in parts if not isinstance(part, _List) or part.items)
    return "".join(f"{write(part)}\n\n" for part in shown_parts)


def _as_markdown(part: _CodebookPart) -> str:
    match part:
        case _Heading(level, text):
            return f"{'#' * (level + 1)} {plain(text)}"
        case _List(title, items):
            return "\n".join([f"**{plain(title)}**", "", *(f"- {plain(item)}" for item in items)])
        case _:
            return plain(part)


def _as_latex(part: _CodebookPart) -> str:
    match part:
        case _Heading(level, text):
            return f"\\{_HEADINGS[level]}{{{_latex_text(text)}}}"
        case _List(title, items):
            lines = [f"\\paragraph{{{_latex_text(title)}}}", r"\begin{itemize}"]
            # Without ``{}``, LaTeX would read a bracket at the start of an item as its label.
            lines += [f"  \\item {{}}{_latex_text(item)}" for item in items]
            return "\n".join([*lines, r"\end{itemize}"])
        case _:
            return _latex_text(part)


def _latex_text(text: str) -> str:
    return one_line(text).translate(_LATEX)


def _codebook_parts(taxonomy: Taxonomy, guidelines: Values) -> Iterator[_CodebookPart]:
    yield _Heading(0, f"Codebook of {taxonomy.name} ({taxonomy.ref})")
    for category in taxonomy.categories:
        modes = [mode for mode in taxonomy.modes if mode.category == category.id]
        # A category of subcategories alone has no heading.
        if modes or not any(child.under == category.id for child in taxonomy.categories):
            yield _Heading(1, taxonomy.title(category.id))
        for mode in modes:
            yield from _mode_parts(mode, taxonomy, guidelines.get(mode.code, {}))


def _mode_parts(mode: Mode, taxonomy: Taxonomy, page: Values) -> Iterator[_CodebookPart]:
    """Yield the definition of a mode, then the guidelines and decided cases of its page."""
    names = {other.slug: f"{other.code} {other.name}" for other in taxonomy.modes}
    yield _Heading(2, names[mode.slug])
    if mode.definition:
        yield mode.definition
    yield _List("Applies when", mode.applies)
    yield _List("Does not apply when", mode.applies_not)
    yield _List(
        "Easily confused with",
        [f"{names.get(other.slug, other.slug)}: {other.difference}" for other in mode.confusable],
    )
    yield _List("Agreed", [_guideline_text(other) for other in page.get("guidelines", ())])
    yield _List("Decided cases", list(_case_texts(page.get("cases", ()))))


def _guideline_text(guideline: Values) -> str:
    return f"{guideline['text']} ({guideline['by']}, {guideline['at'][:10]})"


def _case_texts(cases: Iterable[Values]) -> Iterator[str]:
    for case in cases:
        locations = [_location_text(target) for target in case["targets"]]
        location = f" at {', '.join(locations)}" if locations else ""
        reason = f": {case['reason']}" if case["reason"] else ""
        author = f"({case['by']}, {case['at'][:10]})"  # the date without the time
        yield f"{case['trace']}: {case['value']}{location} {author}{reason}"


def _location_text(target: Values) -> str:
    first = target.get("span_first")
    last = target.get("span_last")
    if first is None:
        return "the whole trace"
    span_range = first if first == last else f"{first} to {last}"
    return f"“{target['quote']}” in {span_range}" if "quote" in target else span_range
