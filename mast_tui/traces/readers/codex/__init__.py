"""Codex: sessions, ``codex exec`` streams and its logs."""
