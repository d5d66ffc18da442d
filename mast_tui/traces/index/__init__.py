"""Where the spans of a trace come from: steps in memory, lines of a file, several files."""
