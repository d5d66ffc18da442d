"""Links between the pages of the project."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
NAMED_FILES: Final = frozenset({".py", ".md", ".csv", ".toml", ".tcss", ".tsv"})
CODE: Final = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    return [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page: its named ones, and those that GitHub makes of headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    names = set(re.findall(r'<a id="([\w-]+)">', text))
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        slug = "".join(
            char
            for char in heading.lower()
            if char in " -_" or unicodedata.category(char)[0] in "LN"
        )
        names.add(slug.strip().replace(" ", "-"))
    return names


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    broken = []
    for page in pages():
        for target in LINK.findall(CODE.sub("", page.read_text("utf-8"))):
            if "://" in target:
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists() or (anchor and anchor not in anchors(file)):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert not broken, "\n".join(broken)


def test_the_readme_leads_to_every_page() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    linked = {target.partition("#")[0] for target in LINK.findall(readme)}
    expected = {page.relative_to(ROOT).as_posix() for page in pages()} - {"README.md"}
    assert sorted(expected - linked) == []


def test_architecture_names_files_and_what_is_in_them() -> None:
    """A name on a line is in a file that the line names; if it names none, in any file of code."""
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    files = [
        path
        for folder in ("mast_tui", "scripts", "tests", "docs")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in NAMED_FILES and path.is_file()
    ]
    texts = {path: path.read_text("utf-8") for path in files}
    all_code = "\n".join(text for path, text in texts.items() if path.suffix == ".py")
    problems = []
    for line in page.partition("\n## Where to change\n")[2].splitlines():
        named = [name for name in re.findall(r"`([^`]+)`", line) if "NAME" not in name]
        paths = [name for name in named if "/" in name or Path(name).suffix in NAMED_FILES]
        on_line = []
        for name in paths:
            matching_files = [path for path in files if f"/{name.rstrip('/')}" in path.as_posix()]
            problems += [] if matching_files or " " in name else [name]
            on_line += matching_files
        text = "\n".join(texts[path] for path in on_line) or all_code
        for name in named:
            if re.fullmatch(r"\w[\w.]*", name) and name not in paths:
                last = name.rpartition(".")[2]
                problems += [] if re.search(rf"\b{last}\b", text) else [f"{name}: {line}"]
    assert not problems, "\n".join(problems)
