"""Failure signatures: modes in failed against successful traces."""
