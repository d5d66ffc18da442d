"""The annotate screen: the trace as a timeline on one side, the taxonomy on the other."""
