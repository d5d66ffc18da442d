"""Rows of observability tools as a tree, and their spans in reading order."""
