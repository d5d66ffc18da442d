"""What is kept of traces: spans as columns, texts by offset, caches."""
