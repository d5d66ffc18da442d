"""Renderers: each shows any report, and knows none."""
