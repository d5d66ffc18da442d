"""Tables as LaTeX."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.figures.record import Figure
from mast_tui.reports.agreement import agreement_report
from mast_tui.reports.model import Column, Kind, Note, Report, ReportSection, Row, Table
from mast_tui.reports.render.latex import escaped, render_latex
from mast_tui.reports.signatures import signatures_report
from tests.figures.signatures.small_report import small_report
from tests.reports import documents, sample
from tests.reports.small_extras import small_extras

COMMAND = re.compile(r"\\[a-zA-Z]+(?:\d+)?(?:\{\})?|\\[{}$&#%_\\]")
MATH = re.compile(r"\$(?:[<>-]|\^\{[-+2]\}|\\[a-zA-Z]+)\$")
ENGINES = {
    "tectonic": ["tectonic", "--untrusted", "paper.tex"],
    "latexmk": ["latexmk", "-xelatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
}


def without_commands(latex: str) -> str:
    """Return escaped text without the commands that escaping may write."""
    # In one pass, as an escaped dollar begins no formula.
    return re.sub(f"{COMMAND.pattern}|{MATH.pattern}", "", latex).replace("{}", "")


@given(st.text() | st.text("\\{}$&#%_^~<>|\"'`-,[]*†κ\x1b\u202e\n a", max_size=12))
def test_escaped_text_has_no_special_sign(text: str) -> None:
    found = escaped(text)
    assert not set('\\{}$&#%_^"`\n\x00') & set(without_commands(found))
    assert "--" not in found
    assert "''" not in found


def test_greek_letters_and_signs_become_commands() -> None:
    assert escaped("κ α † – ≥ ×") == (
        r"$\kappa$ $\alpha$ \textdagger{} \textendash{} $\geq$ $\times$"
    )
    assert escaped("a_b & 50% \\input{x} #1") == (r"a\_b \& 50\% \textbackslash{}input\{x\} \#1")
    assert escaped("-- ''") == "-{}- '{}'"
    assert escaped("\x1b\u202e") == r"$\langle$U+001B$\rangle$$\langle$U+202E$\rangle$"


def columns_of(spec: str) -> int:
    """Return the number of columns of a specification."""
    spec = re.sub(r"@\{(?:[^{}]|\{[^{}]*\})*\}", "", spec)
    return len(re.sub(r"p\{[^{}]*\}", "p", spec))


def columns_in(row: str) -> int:
    """Return the number of columns that the cells of a row take."""
    cells = re.split(r"(?<!\\)&", row)
    spans = [re.match(r"\s*\\multicolumn\{(\d+)\}", cell) for cell in cells]
    return sum(int(found[1]) if found else 1 for found in spans)


def check(latex: str) -> list[list[str]]:
    """Return the rows of each table; fail if environments, braces or columns do not match."""
    body = "\n".join(line for line in latex.splitlines() if not line.startswith("%"))
    open_ones: list[str] = []
    for begins, name in re.findall(r"\\(begin|end)\{(\w+)\}", body):
        if begins == "begin":
            open_ones.append(name)
        else:
            assert open_ones.pop() == name
    assert open_ones == []
    depth = 0
    for sign in re.sub(r"\\[{}\\]", "", body):
        depth += (sign == "{") - (sign == "}")
        assert depth >= 0
    assert depth == 0
    tables = []
    found = r"\\begin\{tabular\}\{([^\n]*)\}\n(.*?)\\end\{tabular\}"
    for spec, inside in re.findall(found, body, re.DOTALL):
        rows = [line for line in inside.splitlines() if line.endswith(r"\\")]
        rules = [line for line in inside.splitlines() if not line.endswith(r"\\")]
        assert {*rules} <= {r"\toprule", r"\midrule", r"\bottomrule"}
        assert {columns_in(row) for row in rows} == {columns_of(spec)}, spec
        assert not [row for row in rows if row.startswith(("[", "*"))]
        tables.append(rows)
    return tables


def test_whole_report_is_well_formed() -> None:
    latex = render_latex(sample.report())
    tables = check(latex)
    assert [len(rows) for rows in tables] == [8] * 6, (
        "a heading and seven rows, in three parts, folded or not"
    )
    assert r"\usepackage{booktabs}" in latex
    assert r"\label{tab:agreement-modes}" in latex
    assert (
        r"[{Agreement on whole traces (1 of 3)}]{Agreement on whole traces (1 of 3). First" in latex
    )
    assert "Without values: what nobody has." in latex
    assert r"\textdagger{}1.1" in latex
    assert r"0.61 & [0.48, 0.72]" in latex
    assert r"\multicolumn{2}{l}{\textemdash{} no variance}" in latex
    assert r"[$-$0.10, 0.10]" in latex
    assert "resizebox" not in latex
    assert latex.index("Pairs share few traces") < latex.index(r"\toprule")
    assert r"\textdagger{} $\kappa$ is low" in latex


@pytest.mark.slow
def test_own_reports_need_only_ascii() -> None:
    for report in (
        agreement_report(documents.agreement()),
        signatures_report(small_report(), extras=small_extras()),
    ):
        latex = render_latex(report)
        assert len(check(latex)) >= len(report.tables)
        body = "\n".join(line for line in latex.splitlines() if not line.startswith("%"))
        assert body.isascii(), {sign for sign in body if not sign.isascii()}
        labels = re.findall(r"\\label\{(.*)\}", latex)
        assert len({*labels}) == len(labels)


def test_wide_or_long_table_is_split() -> None:
    names = [f"figure {number:02d}" for number in range(17)]
    columns = (NAME, *(Column(name, name) for name in names))
    row = Row(
        "1",
        {"name": "a long name of a mode"}
        | {name: Figure(value=0.5, interval=(0.25, 0.75)) for name in names},
    )
    latex = small(row, columns=columns, title="How many did we all miss?")
    tables = check(latex)
    assert len(tables) > 1
    heads = [one for rows in tables for one in re.findall(r"figure \d\d", rows[0])]
    assert heads == names
    assert all(rows[1].startswith("a long name of a mode") for rows in tables)
    assert "resizebox" not in latex
    many = len(tables)
    assert f"]{{How many did we all miss? (1 of {many})." in latex
    assert latex.count("Beware.") == 1
    tall = small(
        *(Row(str(i), {"name": f"a{i}", "k": 0.5}) for i in range(91)),
        columns=(NAME, Column("k", "κ")),
    )
    assert [len(rows) for rows in check(tall)] == [41, 41, 12]
    labels = [r"tab:r-t", *(f"tab:r-t-{number}" for number in range(2, many + 1))]
    assert re.findall(r"\\label\{(.*)\}", latex) == labels


def test_sentences_between_tables_are_quotations() -> None:
    latex = render_latex(sample.report())
    outside = re.sub(r"\\begin\{(quote|table)\}.*?\\end\{\1\}", "", latex, flags=re.DOTALL)
    assert not [line for line in outside.splitlines() if line and not line.startswith("%")]
    assert "\\textbf{Modes.} 4 of 8 traces share one block" in latex


def test_narrow_table_keeps_its_size_and_a_question_has_no_full_stop() -> None:
    row = Row("1", {"name": "a", "k": 0.5})
    latex = small(row, columns=(NAME, Column("k", "κ")), title="How many did we all miss?")
    assert r"\caption[{How many did we all miss?}]{How many did we all miss?}" in latex
    assert "resizebox" not in latex
    assert r"\setlength" not in latex
    assert latex.index("Beware.") < latex.index(r"\toprule")


def small(*rows: Row, columns: tuple[Column, ...], title: str = "T") -> str:
    table = Table("t", title, columns, (rows,), notes=(Note("Beware.", "x", warning=True),))
    return render_latex(Report("r", "R", "", (ReportSection("s", "S", (table,)),)))


NAME = Column("name", "mode", Kind.TEXT)


@given(st.lists(st.text(max_size=20), min_size=2, max_size=2), st.text(max_size=10))
def test_any_name_leaves_tables_well_formed(names: list[str], title: str) -> None:
    rows = [Row(f"{i}", {"name": f"x{name}", "k": 0.5}) for i, name in enumerate(names)]
    latex = small(*rows, columns=(NAME, Column("k", title)), title=title)
    assert [len(rows) for rows in check(latex)] == [3]


def test_name_is_no_argument_of_the_row_before() -> None:
    for name in ("[2cm]", "*", " [a]"):
        row = Row("1", {"name": name, "k": 0.5})
        rows = check(small(row, columns=(NAME, Column("k", "κ"))))[0]
        assert rows[1].startswith("{}")


def test_latex_compiles(tmp_path: Path) -> None:
    engine = next((words for name, words in ENGINES.items() if shutil.which(name)), None)
    if engine is None or (engine[0] == "latexmk" and not shutil.which("xelatex")):
        pytest.skip(f"none of {', '.join(ENGINES)} is installed")
    (tmp_path / "tables.tex").write_text(render_latex(sample.report()), "utf-8")
    (tmp_path / "paper.tex").write_text(
        "\\documentclass{article}\n\\usepackage[T1]{fontenc}\n\\usepackage{booktabs}\n"
        "\\usepackage{graphicx}\n\\usepackage{amssymb}\n\\begin{document}\n\\listoftables\n\\input{tables}\n"
        "\\end{document}\n",
        "utf-8",
    )
    done = subprocess.run(engine, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert (tmp_path / "paper.pdf").exists()
