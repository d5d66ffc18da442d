"""The pictures of README and docs show the screens as they are."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).resolve().parent.parent


def words(picture: Path) -> str:
    """What stands in a picture, whatever its colours and blanks."""
    texts = re.findall(r"<text[^>]*>(.*?)</text>", picture.read_text("utf-8"), re.DOTALL)
    return "".join(html.unescape(re.sub(r"<.*?>", "", "".join(texts))).split())


def test_the_pictures_are_up_to_date(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "make_pictures.py", tmp_path],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    made = {path.name: words(path) for path in tmp_path.glob("*.svg")}
    kept = {path.name: words(path) for path in (ROOT / "docs" / "pictures").glob("*.svg")}
    assert made.keys() == kept.keys(), "run scripts/make_pictures.py"
    assert [name for name in made if made[name] != kept[name]] == [], "run scripts/make_pictures.py"
    pages = "".join(
        page.read_text("utf-8") for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    )
    assert [name for name in kept if f"pictures/{name})" not in pages] == []
