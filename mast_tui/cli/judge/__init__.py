"""``mast-tui judge``: its options, its progress, what it says at the end."""
