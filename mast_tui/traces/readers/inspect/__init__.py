"""Inspect: ``.eval`` archives and JSON logs."""
