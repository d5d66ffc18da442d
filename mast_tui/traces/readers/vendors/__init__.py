"""Exports of tracing platforms."""
