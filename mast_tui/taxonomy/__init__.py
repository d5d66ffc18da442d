"""Failure taxonomies: the model, the loader, and the taxonomy MAST."""
