"""The folder of real traces and labels."""

from __future__ import annotations

from pathlib import Path

import pytest

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"


def corpus(name: str) -> Path:
    """Return a part of the corpus, or skip the test where it is absent."""
    path = CORPUS / name
    if not path.exists():
        pytest.skip("the corpus is not here")
    return path
