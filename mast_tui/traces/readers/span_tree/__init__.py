"""Spans that observe each other, as trees, in reading order."""
