"""The library: the list of all traces, with the annotator's progress on each."""
