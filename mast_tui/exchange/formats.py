"""The names of the formats, light to import: the help page lists them."""

from __future__ import annotations

from typing import Final

IMPORT_FORMATS: Final = (
    "csv-long",
    "csv-wide",
    "mast-data",
    "label-studio",
    "mast-human",
    "who-and-when",
    "agentrx",
    "trail",
    "agentdash",
    "adamast",
    "pisama",
    "agentdebugx",
    "jsonl",
)
SCORE_FORMATS: Final = ("langfuse", "phoenix", "langsmith", "inspect-scores")
"""Exports for the tools that traces were recorded with."""

GOLD_FORMATS: Final = ("gold", "huggingface")
"""Exports of the gold with its sides, its protocol and its figures."""

VERDICT_FORMATS: Final = ("csv-wide", "mast-data")
"""Exports of verdicts alone, for which it does not matter where spans stand."""

EXPORT_FORMATS: Final = (
    "gold",
    "jsonl",
    "mast-data",
    "csv-long",
    "csv-wide",
    "label-studio",
    "doccano",
    "huggingface",
    "codebook",
    *SCORE_FORMATS,
)
