"""Measures the layout and the language of the code, and where both fall short.

    .venv/bin/python scripts/house.py            print the figures beside what is wanted
    .venv/bin/python scripts/house.py --where    and each place that they count
    .venv/bin/python scripts/house.py --json     print the places of the layout as JSON
    .venv/bin/python scripts/house.py --check    fail if a file reads worse than recorded
    .venv/bin/python scripts/house.py --record   record the files that read better

tests/test_house.py holds the figures at what has been reached. import-linter (pyproject.toml)
checks the layers of the packages, and which of them may import Textual and the model's client.

tests/language.csv records the files whose language is not at its target yet. No figure in it may
rise; a file that is not listed must be at the target. Where files are merged, split or renamed,
others may take over what the files that are gone were allowed.
"""

from __future__ import annotations

import argparse
import ast
import csv
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = "mast_tui"
UI: Final = f"{PACKAGE}.ui"

SHARED: Final = {"actions", "dialogs", "services", "text", "trace_view", "widgets"}
"""The folders of ``ui/`` that its rooms may import; every other folder there is a room."""

MOST_FILES: Final = 25
"""The largest number of files in a folder; a larger folder is several rooms."""

LAYOUT_LIMITS: Final = {
    "modules in circles of imports": 0,
    "imports of one room of ui in another": 0,
    "imports of the app in a room of ui": 0,
    "raised NotImplementedError in ui": 0,
    f"folders of ui over {MOST_FILES} files": 0,
    f"folders over {MOST_FILES} files": 0,
    "imports inside functions": 25,
    "of these without a comment that says why": 0,
}
"""The measures of the layout, with the most that each may reach in the end."""

RECORD: Final = ROOT / "tests" / "language.csv"
MEASURED_FOLDERS: Final = (PACKAGE, "scripts")

FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS: Final = (*FUNCTIONS, ast.ClassDef)

LANGUAGE_TARGETS: Final = {
    "vague_names": 5.0,
    "question_docstrings": 0.0,
    "packed_assignments": 0.0,
    "missing_args": 0.0,
    "wrong_args": 0.0,
    "shared_class_names": 0.0,
}
"""The measures of a file's language, with the most per 1,000 lines."""

EXPLANATIONS: Final = {
    "vague_names": "names that do not say what they hold",
    "question_docstrings": "docstrings that begin with What, Whether, Where …",
    "packed_assignments": "assignments of several values in one statement (a, b = x, y)",
    "missing_args": "public functions of two or more arguments without Args:",
    "wrong_args": "arguments and attributes that a docstring describes and that do not exist",
    "shared_class_names": "public class names that another file defines too",
}

VAGUE_NAME: Final = re.compile(
    "again|at|before|behind|beside|by|come|found|given|go|here|it|kept|known|meant|of|one|others|"
    "own|own_one|place|rest|said|shown|such|taken|them|then|there|things?|those|to|told|wanted|"
    "what|who|whose|words"
)
"""A whole name of a variable, function or class that says nothing of what it holds."""

VAGUE_PART: Final = re.compile(
    "anew|behind|beside|found|given|kept|meant|said|taken|told|wanted|whose"
)
"""A part of a longer name that says nothing."""

QUESTION_WORD: Final = re.compile(
    "How|What|Whatever|When|Where|Whether|Which|Who|Whoever|Whom|Whose|Why|Those"
)
"""A first word of a docstring that asks, where the docstring should answer."""

DESCRIBED_SECTION: Final = re.compile(
    r"^(?:Args|Attributes):\n((?: {4,}.*(?:\n|$)|\n)+)", re.MULTILINE
)
"""The part of a docstring that describes arguments or attributes."""

DESCRIBED_NAME: Final = re.compile(r"^ {4}\*{0,2}(\w+)(?: \([^)]*\))?:", re.MULTILINE)
"""A name that such a part describes."""


class Import(NamedTuple):
    """An import of one module of the project in another; ``late`` if it is inside a function.

    ``explained`` if a comment is on its line or on the line above, ``typing`` if it is under
    ``if TYPE_CHECKING`` and never runs.
    """

    importer: str
    imported: str
    line: int
    late: bool
    explained: bool
    typing: bool

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


class LanguageFile(NamedTuple):
    """A file's number of lines and of comments, and the places that each measure counts."""

    lines: int
    comments: int
    places: Mapping[str, list[str]]

    def counts(self) -> dict[str, int]:
        """Return the number of places for each measure."""
        return {measure: len(self.places[measure]) for measure in LANGUAGE_TARGETS}

    def target(self, measure: str) -> int:
        """Return the most places that a file of this length may have."""
        return int(LANGUAGE_TARGETS[measure] * self.lines / 1000)

    def at_target(self) -> bool:
        """Return whether no measure is over its target."""
        return all(count <= self.target(measure) for measure, count in self.counts().items())


Record = Mapping[str, Mapping[str, int]]
"""The recorded counts of each measure, by the path of the file."""


def module_of(path: Path) -> str:
    """Return the name under which a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path, tree: ast.Module, modules: Mapping[str, ast.Module]) -> Iterator[Import]:
    """Yield the imports of modules of the project in a file, except of the packages around it.

    Args:
        path: The file.
        tree: Its syntax tree.
        modules: All modules of the project, by name.

    Yields:
        One import for each module and statement.
    """
    importer = module_of(path)
    lines = path.read_text("utf-8").splitlines()
    for node, late, typing in import_statements(tree.body):
        if isinstance(node, ast.Import):
            names = {alias.name for alias in node.names}
        elif node.module and not node.level:
            names = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        else:
            continue
        comment_above = lines[node.lineno - 2].lstrip().startswith("#")
        explained = comment_above or "#" in lines[node.lineno - 1]
        for name in sorted(names & modules.keys()):
            if not f"{importer}.".startswith(f"{name}."):
                yield Import(importer, name, node.lineno, late, explained, typing)


def import_statements(
    body: Iterable[ast.AST], late: bool = False, typing: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool, bool]]:
    """Yield the imports among statements and inside them.

    Args:
        body: The statements.
        late: Whether they are inside a function.
        typing: Whether they are under ``if TYPE_CHECKING``.

    Yields:
        Each import, with ``late`` and ``typing`` as they are there.
    """
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, late, typing
            continue
        in_function = late or isinstance(node, FUNCTIONS)
        for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, field, ())
            yield from import_statements(inner, in_function, typing or for_types)


def circles(imports: list[Import]) -> list[list[str]]:
    """Return groups of modules that import each other, directly or not; the largest group first."""
    graph: dict[str, set[str]] = {}
    for edge in imports:
        if not edge.typing:
            graph.setdefault(edge.importer, set()).add(edge.imported)
    reachable: dict[str, set[str]] = {}
    for start in graph:
        modules = reachable.setdefault(start, set())
        pending = [start]
        while pending:
            new = graph.get(pending.pop(), set()) - modules
            modules |= new
            pending += new
    rings = {
        frozenset(module for module in modules if name in reachable.get(module, ()))
        for name, modules in reachable.items()
    }
    return sorted((sorted(ring) for ring in rings if ring), key=len, reverse=True)


def room_of(module: str) -> str | None:
    """Return the room of ``ui/`` that a module is in; None for shared folders and elsewhere."""
    folder = module.removeprefix(f"{UI}.").split(".")[0]
    in_folder = module.startswith(f"{UI}.") and (ROOT / PACKAGE / "ui" / folder).is_dir()
    return folder if in_folder and folder not in SHARED else None


def measure_layout() -> dict[str, list[str]]:
    """Return the places that each measure of ``LAYOUT_LIMITS`` counts."""
    paths = sorted((ROOT / PACKAGE).rglob("*.py"))
    trees = {path: ast.parse(path.read_bytes()) for path in paths}
    modules = {module_of(path): tree for path, tree in trees.items()}
    imports = [edge for path, tree in trees.items() for edge in imports_of(path, tree, modules)]
    in_rooms = [edge for edge in imports if room_of(edge.importer)]
    # A statement may import a package and a module of it: it is one import, the last of these.
    late = [*{(edge.importer, edge.line): edge for edge in imports if edge.late}.values()]
    stubs = [
        f"{name}:{node.lineno}"
        for name, tree in modules.items()
        if name.startswith(f"{UI}.")
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and node.exc is not None
        if "NotImplementedError" in ast.unparse(node.exc)
    ]
    files = Counter(path.parent.relative_to(ROOT) for path in paths if path.name != "__init__.py")
    large = {folder: number for folder, number in files.most_common() if number > MOST_FILES}
    ui = Path(*UI.split("."))
    places: tuple[list[object], ...] = (
        [f"{name} (in a circle of {len(ring)})" for ring in circles(imports) for name in ring],
        [edge for edge in in_rooms if room_of(edge.imported) not in {None, room_of(edge.importer)}],
        [edge for edge in in_rooms if edge.imported == f"{UI}.app"],
        [*stubs],
        [f"{folder}: {number}" for folder, number in large.items() if folder.is_relative_to(ui)],
        [f"{folder}: {number}" for folder, number in large.items()],
        [*late],
        [edge for edge in late if not edge.explained],
    )
    return {
        measure: [str(item) for item in counted]
        for measure, counted in zip(LAYOUT_LIMITS, places, strict=True)
    }


def chosen_name(node: ast.AST) -> str | None:
    """Return the name that the code chooses here: of a variable, argument, attribute, function."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return node.attr
    if isinstance(node, DEFINITIONS):
        return node.name
    return node.arg if isinstance(node, ast.arg) else None


def is_vague(name: str) -> bool:
    """Return whether a name says nothing of what it holds."""
    bare = name.lstrip("_").lower()
    parts = bare.split("_")
    return bool(VAGUE_NAME.fullmatch(bare)) or any(map(VAGUE_PART.fullmatch, parts))


def is_packed(node: ast.AST) -> bool:
    """Return whether a statement assigns several values to as many names."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Tuple)
        and isinstance(node.targets[0], ast.Tuple)
        and len(node.value.elts) == len(node.targets[0].elts)
    )


def lacks_args(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a public function has two or more arguments and does not explain them."""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    named = [argument for argument in arguments if argument.arg not in ("self", "cls")]
    is_public = not node.name.startswith("_")
    return is_public and len(named) >= 2 and "Args:" not in (ast.get_docstring(node) or "")


def wrong_args(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the arguments or attributes that a docstring describes and that do not exist."""
    docstring = ast.get_docstring(node) or ""
    described = [
        name
        for section in DESCRIBED_SECTION.findall(docstring)
        for name in DESCRIBED_NAME.findall(section)
    ]
    if not described:
        return []
    if isinstance(node, ast.ClassDef):
        existing = {chosen_name(part) for part in ast.walk(node)}
    else:
        existing = {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
    # The argument that an override does not use has an underscore before its name.
    return [name for name in described if not existing & {name, f"_{name}"}]


def language_places(tree: ast.AST) -> dict[str, list[tuple[int, str]]]:
    """Return the lines and texts that each measure counts in a file by itself.

    The names of all public classes are among them, whether another file has them or not.
    """
    places: dict[str, list[tuple[int, str]]] = {measure: [] for measure in LANGUAGE_TARGETS}
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 1)
        name = chosen_name(node)
        if name is not None and is_vague(name):
            places["vague_names"].append((line, name))
        if is_packed(node):
            places["packed_assignments"].append((line, ast.unparse(node)))
        if isinstance(node, FUNCTIONS) and lacks_args(node):
            places["missing_args"].append((line, node.name))
        if isinstance(node, DEFINITIONS):
            places["wrong_args"].extend((line, f"{node.name}: {name}") for name in wrong_args(node))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            places["shared_class_names"].append((line, node.name))
        if isinstance(node, (ast.Module, *DEFINITIONS)):
            docstring = ast.get_docstring(node) or ""
            first_word = docstring.partition(" ")[0].strip("`,.;:\n")
            if QUESTION_WORD.fullmatch(first_word):
                places["question_docstrings"].append((line, docstring.partition("\n")[0]))
    return places


def measure_language(root: Path, folders: Iterable[str]) -> dict[str, LanguageFile]:
    """Return the language of each Python file, by its path from the root.

    Args:
        root: The folder of the project.
        folders: The folders to measure, as paths from the root.

    Returns:
        All files, also those without a place that counts.
    """
    paths = sorted(path for folder in folders for path in (root / folder).rglob("*.py"))
    texts = {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in paths}
    places = {path: language_places(ast.parse(text)) for path, text in texts.items()}
    homes: dict[str, set[str]] = defaultdict(set)
    for path, by_measure in places.items():
        for _, name in by_measure["shared_class_names"]:
            homes[name].add(path)
    for path, by_measure in places.items():
        by_measure["shared_class_names"] = [
            (line, f"{name}, also in {', '.join(sorted(homes[name] - {path}))}")
            for line, name in by_measure["shared_class_names"]
            if len(homes[name]) > 1
        ]
    return {
        path: LanguageFile(
            texts[path].count("\n"),
            sum(line.lstrip().startswith("#") for line in texts[path].splitlines()),
            {
                measure: [f"{path}:{line}: {text}" for line, text in counted]
                for measure, counted in by_measure.items()
            },
        )
        for path, by_measure in places.items()
    }


def read_record(path: Path) -> Record:
    """Return the recorded counts; where a merge left a file twice, the lower ones."""
    record: dict[str, dict[str, int]] = {}
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            counts = {measure: int(row[measure]) for measure in LANGUAGE_TARGETS}
            earlier = record.get(row["path"], counts)
            record[row["path"]] = {
                measure: min(counts[measure], earlier[measure]) for measure in counts
            }
    return record


def write_record(path: Path, files: Mapping[str, LanguageFile]) -> None:
    """Write the counts of all files that are not at the target, a line each.

    Args:
        path: The file to write.
        files: The measured files, by path.
    """
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(["path", *LANGUAGE_TARGETS])
        for name, file in sorted(files.items()):
            if not file.at_target():
                writer.writerow([name, *file.counts().values()])


def regressions(files: Mapping[str, LanguageFile], record: Record) -> list[str]:
    """Return a message for each file and measure that is worse than recorded.

    Args:
        files: The measured files, by path.
        record: The recorded counts.

    Returns:
        Messages of several lines, with the places that count; none for a measure whose rise is
        covered by the recorded files that are gone.
    """
    messages = []
    for measure in LANGUAGE_TARGETS:
        allowance = sum(counts[measure] for path, counts in record.items() if path not in files)
        rise = 0
        worse = []
        for path, file in files.items():
            count = file.counts()[measure]
            limit = record[path][measure] if path in record else file.target(measure)
            if count > limit:
                rise += count - limit
                heading = f"{path}: {count} {EXPLANATIONS[measure]}; at most {limit}"
                worse.append("\n    ".join([heading, *file.places[measure]]))
        if rise > allowance:
            messages += worse
    return messages


def language_figures(files: Mapping[str, LanguageFile]) -> Iterator[str]:
    """Yield a line for each measure over all files."""
    thousands = sum(file.lines for file in files.values()) / 1000
    for measure, target in LANGUAGE_TARGETS.items():
        count = sum(file.counts()[measure] for file in files.values())
        goal = f"at most {target:g}" if target else "none"
        rate = f"{count / thousands:.1f} per 1,000 lines"
        yield f"{count:5} {EXPLANATIONS[measure]}, {rate} (wanted: {goal})"
    comments = sum(file.comments for file in files.values())
    yield f"{comments:5} lines of comments, {comments / thousands:.1f} per 1,000 lines"


def main() -> int:
    """Print the figures, or check or record the language; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--where", action="store_true", help="list the places behind each figure")
    parser.add_argument("--json", action="store_true", help="print the places as JSON")
    parser.add_argument("--check", action="store_true", help="fail if a file reads worse")
    parser.add_argument("--record", action="store_true", help="record files that read better")
    options = parser.parse_args()
    if options.json:
        print(json.dumps(measure_layout()))
        return 0
    files = measure_language(ROOT, MEASURED_FOLDERS)
    if options.check or options.record:
        messages = regressions(files, read_record(RECORD))
        if messages:
            print("\n".join(messages))
            print(
                "Give these the standard term, an imperative docstring, a statement a line. "
                "`scripts/house.py --record` lowers the record where files read better; it "
                "raises it only by what files that are gone were allowed.",
                file=sys.stderr,
            )
            return 1
        if options.record:
            write_record(RECORD, files)
            print(f"{len(read_record(RECORD))} of {len(files)} files are not at the target yet")
        return 0
    for measure, places in measure_layout().items():
        print(f"{len(places):5} {measure} (wanted: {LAYOUT_LIMITS[measure] or 'none'})")
        if options.where and places:
            print("\n".join(f"        {item}" for item in places))
    for figure in language_figures(files):
        print(figure)
    if options.where:
        for file in files.values():
            for measure, places in file.places.items():
                for item in places:
                    print(f"        {measure}: {item}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
