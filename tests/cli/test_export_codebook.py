"""The codebook: definitions, guidelines and decided cases, as the appendix of a paper."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mast_tui.exchange.exporters.codebook import codebook_latex, codebook_markdown
from mast_tui.gold import Guideline
from mast_tui.taxonomy.loader import load_mast
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import GuidelineSet
from tests.cli.conftest import Cli

MAST = load_mast()
LABELS = "trace_id,annotator,mode,value\nt,alice,1.1,absent\nt,alice,,finished\n"
AGREED: dict[str, Any] = {
    "1.3": {
        "guidelines": [{"text": "50% & more_ #1 \\x", "by": "alice", "at": "2026-05-04T10:20:30Z"}],
        "cases": [
            {
                "trace": "run_7",
                "value": "present",
                "targets": [{"span_first": "k1", "span_last": "k3"}],
                "reason": "[it] *repeats* itself",
                "by": "bob",
                "at": "2026-05-05T10:20:30Z",
            }
        ],
    }
}


def test_every_mode_is_defined(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text(LABELS, encoding="utf-8")
    assert cli("import", "labels.csv", "--format", "csv-long").code == 0
    workspace = Workspace.open(tmp_path / ".mast-tui" / "workspace.db")
    guideline = Guideline("g", MAST.modes[0].slug, "Ask twice.", "alice", "2026-05-04T10:20:30Z")
    workspace.append([NewEvent("alice", None, MAST.ref, None, GuidelineSet("g", None, guideline))])
    workspace.close()
    for name in ("book.md", "book.tex", "book.txt"):
        done = cli("export", "--format", "codebook", "-o", name, "--json")
        assert done.code == 0, done.err
        assert (done.json["modes"], done.json["guidelines"]) == (len(MAST.modes), 1)
        assert cli("export", "--format", "codebook", "-o", name).code == 0
    markdown = (tmp_path / "book.md").read_text("utf-8")
    latex = (tmp_path / "book.tex").read_text("utf-8")
    for mode in MAST.modes:
        assert f"### {mode.code} {mode.name}\n\n" in markdown
        assert f"\\subsubsection{{{mode.code} {mode.name}}}\n\n" in latex
    assert "- Ask twice. (alice, 2026-05-04)" in markdown
    assert "  \\item {}Ask twice. (alice, 2026-05-04)" in latex


def test_foreign_words_are_no_markup() -> None:
    latex = codebook_latex(MAST, AGREED)
    assert r"50\% \& more\_ \#1 \textbackslash{}x (alice, 2026-05-04)" in latex
    assert r"\item {}run\_7: present at k1 to k3 (bob, 2026-05-05). [it] *repeats* itself" in latex
    begun = re.findall(r"\\begin\{(\w+)\}", latex)
    assert begun == re.findall(r"\\end\{(\w+)\}", latex)
    assert begun
    markdown = codebook_markdown(MAST, AGREED)
    assert r"\[it\] \*repeats\* itself" in markdown


def test_it_holds_nobodys_labels(cli: Cli) -> None:
    labels = ("export", "--format", "codebook", "-o", "book.md", "--labels", "alice")
    assert cli(*labels).code == 2
