"""Where the sample traces lie that come with the package."""

from __future__ import annotations

from pathlib import Path


def samples_folder() -> Path:
    """The folder of the sample traces: inside an installed package, or beside it in a checkout.

    Raises ``FileNotFoundError`` where the installation has lost them.
    """
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "sample_traces", package.parent / "sample_traces"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(
        f"the sample traces are missing from {package}: install mast-tui again, or name a trace"
    )
