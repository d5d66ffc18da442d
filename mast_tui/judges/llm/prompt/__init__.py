"""What a model is told: the taxonomy's words, examples, and the trace, redacted and in windows."""
