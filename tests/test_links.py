"""Links between the pages of the project lead somewhere."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
CODE: Final = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    return [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


def anchors(page: Path) -> set[str]:
    """The names that a page can be linked to by: of headings, as GitHub makes them, and given."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = set(re.findall(r'<a id="([\w-]+)">', text))
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        kept = "".join(
            one for one in heading.lower() if one in " -_" or unicodedata.category(one)[0] in "LN"
        )
        found.add(kept.strip().replace(" ", "-"))
    return found


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
    told = {page.relative_to(ROOT).as_posix() for page in pages()} - {"README.md"}
    assert sorted(told - linked) == []


def test_the_files_that_architecture_walks_through_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    walks = page.partition("\n## The way of a file\n")[2]
    named = re.findall(r"`([\w/]+\.py)`", walks)
    assert len(named) > 20
    assert [name for name in named if not (ROOT / "mast_tui" / name).is_file()] == []
