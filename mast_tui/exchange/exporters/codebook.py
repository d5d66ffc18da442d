"""``codebook``: how each mode was defined, what was agreed about it, and the cases decided so far.

It is the appendix of a paper, as Markdown or as a part of a LaTeX document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    """``level`` counts from 0."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class _List:
    """Items under a title; without items it is not shown."""

    title: str
    items: Sequence[str]


_Part = _Heading | _List | str


def codebook_markdown(taxonomy: Taxonomy, guidelines: Values) -> str:
    """Return the codebook as Markdown.

    Args:
        taxonomy: The modes and their definitions.
        guidelines: What was agreed and decided, by code, as in the gold document.
    """
    return "".join(f"{text}\n\n" for text in _written(taxonomy, guidelines, _as_markdown))


def codebook_latex(taxonomy: Taxonomy, guidelines: Values) -> str:
    """Return the same as sections of a LaTeX document, to be read in by ``\\input``.

    Args:
        taxonomy: The taxonomy.
        guidelines: The guidelines and cases by the mode's code.
    """
    return "".join(f"{text}\n\n" for text in _written(taxonomy, guidelines, _as_latex))


def _written(
    taxonomy: Taxonomy, guidelines: Values, write: Callable[[_Part], str]
) -> Iterator[str]:
    for part in _parts(taxonomy, guidelines):
        if not isinstance(part, _List) or part.items:
            yield write(part)


def _as_markdown(part: _Part) -> str:
    match part:
        case _Heading(level, text):
            return f"{'#' * (level + 1)} {plain(text)}"
        case _List(title, items):
            return "\n".join([f"**{plain(title)}**", "", *(f"- {plain(item)}" for item in items)])
        case _:
            return plain(part)


def _as_latex(part: _Part) -> str:
    match part:
        case _Heading(level, text):
            return f"\\{_HEADINGS[level]}{{{_tex(text)}}}"
        case _List(title, items):
            lines = [f"\\paragraph{{{_tex(title)}}}", r"\begin{itemize}"]
            # An item that begins with a bracket would be taken for the item's own label.
            lines += [f"  \\item {{}}{_tex(item)}" for item in items]
            return "\n".join([*lines, r"\end{itemize}"])
        case _:
            return _tex(part)


def _tex(text: str) -> str:
    return one_line(text).translate(_LATEX)


def _parts(taxonomy: Taxonomy, guidelines: Values) -> Iterator[_Part]:
    yield _Heading(0, f"Codebook of {taxonomy.name} ({taxonomy.ref})")
    for category in taxonomy.categories:
        modes = [mode for mode in taxonomy.modes if mode.category == category.id]
        if modes or not any(child.under == category.id for child in taxonomy.categories):
            yield _Heading(1, taxonomy.title(category.id))
        for mode in modes:
            yield from _of_mode(mode, taxonomy, guidelines.get(mode.code, {}))


def _of_mode(mode: Mode, taxonomy: Taxonomy, page: Values) -> Iterator[_Part]:
    names = {other.slug: f"{other.code} {other.name}" for other in taxonomy.modes}
    yield _Heading(2, names[mode.slug])
    if mode.definition:
        yield mode.definition
    yield _List("Applies when", mode.applies)
    yield _List("Does not apply when", mode.applies_not)
    yield _List(
        "Easily taken for it",
        [f"{names.get(other.slug, other.slug)}: {other.difference}" for other in mode.confusable],
    )
    yield _List("Agreed", [_guideline(other) for other in page.get("guidelines", ())])
    yield _List("Decided cases", list(_cases(page.get("cases", ()))))


def _guideline(guideline: Values) -> str:
    return f"{guideline['text']} ({guideline['by']}, {guideline['at'][:10]})"


def _cases(cases: Iterable[Values]) -> Iterator[str]:
    for case in cases:
        places = [_location(target) for target in case["targets"]]
        where = f" at {', '.join(places)}" if places else ""
        reason = f". {case['reason']}" if case["reason"] else ""
        yield f"{case['trace']}: {case['value']}{where} ({case['by']}, {case['at'][:10]}){reason}"


def _location(target: Values) -> str:
    first = target.get("span_first")
    last = target.get("span_last")
    if first is None:
        return "the whole trace"
    where = first if first == last else f"{first} to {last}"
    return f"“{target['quote']}” in {where}" if "quote" in target else where
