"""Finding text in traces of any size."""
