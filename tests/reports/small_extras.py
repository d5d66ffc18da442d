"""Examples and decided traces of a small report, with hostile texts."""

from __future__ import annotations

from mast_tui.reports.examples import Extras, LabelExample
from mast_tui.taxonomy.loader import load_mast
from tests.figures.signatures.small_report import HOSTILE, PLAIN


def small_extras() -> Extras:
    """Return examples with hostile texts."""
    note = "<script>window.hacked=3</script><img src=x onerror=window.hacked=4>"
    quote = f"</blockquote></style></script>{note}\n<svg onload=window.hacked=5>\x1b]0;x\x07"
    return Extras(
        load_mast(),
        {PLAIN: {"3.1": 4, "1.3": 1}},
        (
            LabelExample(PLAIN, "3.1", f"trace{HOSTILE}", 3, 5, False, quote, note, True),
            LabelExample(PLAIN, "1.3", "trace-02", 8, None, False, "long " * 200, "", False),
        ),
    )
