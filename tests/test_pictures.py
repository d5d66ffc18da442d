"""The pictures of README and tour show the screens as they are; others are made by the script."""

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


def text_of(picture: Path) -> str:
    """Return the text in a picture without its colours and blanks."""
    texts = re.findall(r"<text[^>]*>(.*?)</text>", picture.read_text("utf-8"), re.DOTALL)
    return "".join(html.unescape(re.sub(r"<.*?>", "", "".join(texts))).split())


def test_the_pictures_are_made_and_those_of_the_tour_are_current(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "make_pictures.py", tmp_path],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    pages = {
        page.stem: page.read_text("utf-8")
        for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    }
    in_pages = {
        name: set(re.findall(r"pictures/([\w-]+\.svg)\)", text)) for name, text in pages.items()
    }
    pictures = ROOT / "docs" / "pictures"
    made = {path.name for path in tmp_path.glob("*.svg")}
    assert made == {path.name for path in pictures.glob("*.svg")} == set().union(*in_pages.values())
    checked = sorted(in_pages["README"] | in_pages["tour"])
    old = [name for name in checked if text_of(tmp_path / name) != text_of(pictures / name)]
    assert checked
    assert old == [], "run scripts/make_pictures.py"
