"""The library: all traces that were found, and how far one has come with them."""
