"""Pictures of a screen, one after the other, as one moving picture: an SVG without any script."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

SECONDS: Final = 3.5
"""How long each picture stands."""

_PIECE: Final = re.compile(r"<rect [^>]*/>|<text .*?</text>", re.DOTALL)
_STYLE: Final = re.compile(r"\.(terminal-\w+-r\d+) \{ (.*?) \}")
_SAME: Final = re.compile(r' (?:shape-rendering="crispEdges"|clip-path="url\(.*?\)")')
_SHOWN: Final = ("hidden", "visible")

_RULES: Final = """\
text { font-family: Fira Code, monospace; font-size: 20px; white-space: pre }
rect { shape-rendering: crispEdges }
.title { font-family: arial; font-size: 18px; font-weight: bold }
@media (prefers-reduced-motion: reduce) { g { animation: none !important } }"""


def film(pictures: Sequence[str]) -> str:
    """Show pictures one after the other, and again.

    What several of them have in common stands in it once, so it is little bigger than one. Where
    nothing moves, as in print or by the reader's wish, the last picture stands.

    Args:
        pictures: As Textual exports a screen, all of one size, each with a title of its own.

    Returns:
        The film, as SVG.
    """
    styles: dict[str, str] = {}
    when: defaultdict[str, set[int]] = defaultdict(set)
    titles = []
    for number, picture in enumerate(pictures):
        names = {
            name: styles.setdefault(style, f"s{len(styles)}")
            for name, style in _STYLE.findall(picture)
        }
        window, _, body = picture.partition("</defs>")[2].partition('<g transform="translate(9,')
        title = re.sub(r'class="[^"]*"', 'class="title"', _PIECE.findall(window)[1])
        titles.append(f'<g class="{_scene({number}, len(pictures))}">{title}</g>')
        for piece in _PIECE.findall(body):
            before, mark, after = _SAME.sub("", piece).partition('class="')
            name, _, rest = after.partition('"')
            when[f'{before}{mark}{names[name]}"{rest}' if mark else before].add(number)
    groups: defaultdict[tuple[bool, str], list[str]] = defaultdict(list)
    ground = Counter(re.findall(r'<rect (fill="[^"]*")', "".join(when))).most_common(1)[0][0]
    for piece, numbers in when.items():
        if piece.startswith(f"<rect {ground}"):
            continue
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
                for (_, scene), pieces in sorted(groups.items())  # what is under texts, then these
            ),
            "</g>",
            "</svg>\n",
        ]
    )


def _scene(numbers: set[int], count: int) -> str:
    """The name of what stands in these of so many pictures."""
    return "f" + "".join(str(int(number in numbers)) for number in range(count))


def _rules(scene: str) -> str:
    """When what goes by this name is there."""
    there = [mark == "1" for mark in scene[1:]]
    if all(there):
        return ""
    steps = " ".join(
        f"{100 * place / len(there):.4g}% {{ visibility: {_SHOWN[now]} }}"
        for place, now in enumerate(there)
        if place == 0 or now != there[place - 1]
    )
    time = f"{SECONDS * len(there):g}s"
    return (
        f".{scene} {{ visibility: {_SHOWN[there[-1]]}; "
        f"animation: {scene} {time} step-end infinite }}\n@keyframes {scene} {{ {steps} }}"
    )
