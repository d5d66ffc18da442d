"""An animation of pictures of a screen: an SVG without scripts."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

SECONDS: Final = 3.5
"""The time of each picture."""

_PIECE: Final = re.compile(r"<rect [^>]*/>|<text .*?</text>", re.DOTALL)
_STYLE: Final = re.compile(r"\.(terminal-\w+-r\d+) \{ (.*?) \}")
_SAME: Final = re.compile(r' (?:shape-rendering="crispEdges"|clip-path="url\(.*?\)")')

_RULES: Final = """\
text { font-family: Fira Code, monospace; font-size: 20px; white-space: pre }
rect { shape-rendering: crispEdges }
.title { font-family: arial; font-size: 18px; font-weight: bold }
@media (prefers-reduced-motion: reduce) { g { animation: none !important } }"""


def film(pictures: Sequence[str]) -> str:
    """Return an animation that repeats some pictures.

    Parts that several pictures share are in it once, so it is little larger than one picture. In
    print, or if the reader prefers no motion, it shows the last picture.

    Args:
        pictures: Screens of one size as Textual exports them, each with a title of its own.

    Returns:
        The animation as SVG.
    """
    styles: dict[str, str] = {}
    pictures_by_piece: defaultdict[str, set[int]] = defaultdict(set)
    titles = []
    for number, picture in enumerate(pictures):
        title, pieces = _pieces(picture, styles)
        titles.append(f'<g class="{_scene({number}, len(pictures))}">{title}</g>')
        for piece in pieces:
            pictures_by_piece[piece].add(number)
    groups: defaultdict[tuple[bool, str], list[str]] = defaultdict(list)
    colours = Counter(re.findall(r'<rect (fill="[^"]*")', "".join(pictures_by_piece)))
    ground = colours.most_common(1)[0][0]
    for piece, numbers in pictures_by_piece.items():
        if not piece.startswith(f"<rect {ground}"):
            groups[piece.startswith("<text"), _scene(numbers, len(pictures))].append(piece)
    first = pictures[0]
    size = re.search(r'viewBox="[^"]*"', first)
    frame = re.search(r'<rect [^>]*rx="8"/>', first)
    inside = re.search(r'-clip-terminal">\s*<rect ([^>]*)/>', first)
    assert size is not None
    assert frame is not None
    assert inside is not None
    rules = [_RULES, *(f".{name} {{ {style} }}" for style, name in styles.items())]
    scenes = {scene for _, scene in groups} | {
        _scene({number}, len(pictures)) for number in range(len(pictures))
    }
    rules += [_rules(scene) for scene in sorted(scenes)]
    return "\n".join(
        [
            f'<svg {size[0]} xmlns="http://www.w3.org/2000/svg">',
            "<style>",
            *rules,
            "</style>",
            frame[0],
            *titles,
            f'<g transform="translate(9, 41)"><rect {ground} {inside[1]}/>',
            *(
                f'<g class="{scene}">{"".join(pieces)}</g>'
                for (_, scene), pieces in sorted(groups.items())  # texts are above all others
            ),
            "</g>",
            "</svg>\n",
        ]
    )


def _pieces(picture: str, styles: dict[str, str]) -> tuple[str, list[str]]:
    """Return the title and the pieces of a picture, with the names of ``styles``, which grow."""
    names = {
        name: styles.setdefault(style, f"s{len(styles)}") for name, style in _STYLE.findall(picture)
    }
    window, _, body = picture.partition("</defs>")[2].partition('<g transform="translate(9,')
    title = re.sub(r'class="[^"]*"', 'class="title"', _PIECE.findall(window)[1])
    pieces = [
        re.sub(r'(?<=class=")[^"]*', lambda name: names[name[0]], _SAME.sub("", piece), count=1)
        for piece in _PIECE.findall(body)
    ]
    return title, pieces


def _scene(numbers: set[int], count: int) -> str:
    """Return the name of the pieces in some pictures: a digit 1 or 0 for each picture."""
    return "f" + "".join(str(int(number in numbers)) for number in range(count))


def _rules(scene: str) -> str:
    """Return the CSS that shows the pieces of a scene in their pictures."""
    visibility = ["visible" if digit == "1" else "hidden" for digit in scene[1:]]
    if "hidden" not in visibility:
        return ""
    steps = " ".join(
        f"{100 * number / len(visibility):.4g}% {{ visibility: {value} }}"
        for number, value in enumerate(visibility)
        if number == 0 or value != visibility[number - 1]
    )
    time = f"{SECONDS * len(visibility):g}s"
    return (
        f".{scene} {{ visibility: {visibility[-1]}; "
        f"animation: {scene} {time} step-end infinite }}\n@keyframes {scene} {{ {steps} }}"
    )
