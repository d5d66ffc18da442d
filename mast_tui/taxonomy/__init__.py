"""Failure taxonomies: the model, the loader, and MAST itself."""
