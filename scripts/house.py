"""Prints how the code is laid out: what should not be there, how much of it there is, and where.

    .venv/bin/python scripts/house.py            the figures, with what is wanted
    .venv/bin/python scripts/house.py --where    and each place behind them
    .venv/bin/python scripts/house.py --json     the places, for programs

tests/test_house.py holds the figures at what has been reached. The floors between the packages,
and who may import Textual and the model's client, are import-linter's (pyproject.toml).
"""

from __future__ import annotations

import argparse
import ast
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = "mast_tui"
UI: Final = f"{PACKAGE}.ui"

SHARED: Final = {"actions", "dialogs", "screens", "services", "text", "trace_view", "widgets"}
"""The folders of ``ui/`` that its rooms may import; every other folder there is a room."""

MOST_FILES: Final = 25
"""A folder with more files than these is several rooms."""

WANTED: Final = {
    "modules in circles of imports": 0,
    "imports of one room of ui in another": 0,
    "imports of the app in a room of ui": 0,
    "raised NotImplementedError in ui": 0,
    f"folders of ui over {MOST_FILES} files": 0,
    f"folders over {MOST_FILES} files": 0,
    "imports inside functions": 25,
    "of these without a comment that says why": 0,
}
"""What is counted, with how much of it there may be in the end."""


class Import(NamedTuple):
    """That one module of the project imports another; ``late`` inside a function.

    ``explained`` says that a comment stands on its line or on the one above, ``typing`` that it
    stands under ``if TYPE_CHECKING`` and never runs.
    """

    importer: str
    imported: str
    line: int
    late: bool
    explained: bool
    typing: bool

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


def module_of(path: Path) -> str:
    """The name by which a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path, tree: ast.Module, modules: Mapping[str, ast.Module]) -> Iterator[Import]:
    """What a file imports of the project's modules, but for the packages in which it lies."""
    here, lines = module_of(path), path.read_text("utf-8").splitlines()
    late: set[int] = set()
    typing: set[int] = set()
    for outer in ast.walk(tree):
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
            late |= {id(inner) for inner in ast.walk(outer)}
        elif isinstance(outer, ast.If) and "TYPE_CHECKING" in ast.unparse(outer.test):
            typing |= {id(inner) for inner in ast.walk(outer)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        else:
            continue
        why = lines[node.lineno - 2].lstrip().startswith("#") or "#" in lines[node.lineno - 1]
        for name in sorted(names & modules.keys()):
            if not f"{here}.".startswith(f"{name}."):
                yield Import(here, name, node.lineno, id(node) in late, why, id(node) in typing)


def circles(imports: list[Import]) -> list[list[str]]:
    """Modules that import each other, directly or not, also late; the greatest circle first."""
    graph: dict[str, set[str]] = {}
    for one in imports:
        if not one.typing:
            graph.setdefault(one.importer, set()).add(one.imported)
    reached: dict[str, set[str]] = {}
    for start in graph:
        found, left = reached.setdefault(start, set()), [start]
        while left:
            new = graph.get(left.pop(), set()) - found
            found |= new
            left += new
    rings = {
        frozenset(other for other in found if name in reached.get(other, ()))
        for name, found in reached.items()
    }
    return sorted((sorted(ring) for ring in rings if ring), key=len, reverse=True)


def room_of(module: str) -> str | None:
    """The room of ``ui/`` in which a module lies; None for what rooms share, and elsewhere."""
    folder = module.removeprefix(f"{UI}.").split(".")[0]
    is_one = module.startswith(f"{UI}.") and (ROOT / PACKAGE / "ui" / folder).is_dir()
    return folder if is_one and folder not in SHARED else None


def measure() -> dict[str, list[str]]:
    """The places behind each figure of ``WANTED``."""
    paths = sorted((ROOT / PACKAGE).rglob("*.py"))
    trees = {path: ast.parse(path.read_bytes()) for path in paths}
    modules = {module_of(path): tree for path, tree in trees.items()}
    imports = [one for path, tree in trees.items() for one in imports_of(path, tree, modules)]
    in_rooms = [one for one in imports if room_of(one.importer)]
    # A statement may import a package and a module of it: it is one import, the last of these.
    in_functions = {(one.importer, one.line): one for one in imports if one.late}
    late = [*in_functions.values()]
    stubs = [
        f"{name}:{node.lineno}"
        for name, tree in modules.items()
        for node in ast.walk(tree)
        if name.startswith(f"{UI}.") and isinstance(node, ast.Raise) and node.exc is not None
        if "NotImplementedError" in ast.unparse(node.exc)
    ]
    files = Counter(path.parent.relative_to(ROOT) for path in paths if path.name != "__init__.py")
    big = {folder: number for folder, number in files.most_common() if number > MOST_FILES}
    ui = Path(*UI.split("."))
    found: tuple[list[object], ...] = (
        [f"{name} (in a circle of {len(ring)})" for ring in circles(imports) for name in ring],
        [one for one in in_rooms if room_of(one.imported) not in {None, room_of(one.importer)}],
        [one for one in in_rooms if one.imported == f"{UI}.app"],
        [*stubs],
        [f"{folder}: {number}" for folder, number in big.items() if folder.is_relative_to(ui)],
        [f"{folder}: {number}" for folder, number in big.items()],
        late,
        [one for one in late if not one.explained],
    )
    return {
        what: [str(place) for place in places] for what, places in zip(WANTED, found, strict=True)
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--where", action="store_true", help="list the places behind each figure")
    parser.add_argument("--json", action="store_true", help="print the places as JSON")
    asked = parser.parse_args()
    found = measure()
    if asked.json:
        print(json.dumps(found))
        return
    for what, places in found.items():
        print(f"{len(places):5} {what} (wanted: {WANTED[what] or 'none'})")
        for place in places if asked.where else ():
            print(f"        {place}")


if __name__ == "__main__":
    main()
