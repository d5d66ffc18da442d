"""The sources of the spans of a trace: steps in memory, lines of a file, several files."""
