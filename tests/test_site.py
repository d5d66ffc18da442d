"""The pages of the documentation become a site, and no link in it is dead."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_has_every_page(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for page in (ROOT / "docs").glob("*.md"):
        assert (tmp_path / "site" / page.stem / "index.html").is_file()
    first = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert 'href="annotating/"' in first
    assert 'href="docs/' not in first


def test_the_site_leads_to_every_page() -> None:
    pages = re.findall(r"([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    ours = {page.name for page in (ROOT / "docs").glob("*.md")}
    assert sorted(pages) == sorted(
        ours | {"index.md", "options.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"}
    )
