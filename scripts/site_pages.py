"""Add the pages of the project's folder, the options of the commands and the man page to the site.

MkDocs calls this module while it builds (``hooks`` in mkdocs.yml). The README is the first page.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from scripts.man_page import man_page
from scripts.options_page import options_page

PAGES: Final = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "SECURITY.md": "SECURITY.md",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/.

    Args:
        files: The files of the site.
        config: The configuration of the site.
    """
    root = Path(config.docs_dir).parent
    for source, target in PAGES.items():
        text = (root / source).read_text("utf-8")
        for other, name in PAGES.items():
            text = text.replace(f"({other}", f"({name}")
        text = re.sub(r"\]\(docs/", "](", text)
        files.append(File.generated(config, target, content=text))
    files.append(File.generated(config, "options.md", content=options_page()))
    files.append(File.generated(config, "mast-tui.1", content=man_page()))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Change the links of a page in docs/ to pages in the project's folder."""
    for source, target in PAGES.items():
        markdown = markdown.replace(f"](../{source}", f"]({target}")
    return markdown
