"""``mast-tui report``: how and why runs fail."""
