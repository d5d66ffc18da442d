"""A run over many traces: its requests, its stored answers, and its continuation after a stop."""
