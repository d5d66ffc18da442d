"""Judge runs: their suggestions, the annotator's answers, and comparisons of two runs."""
