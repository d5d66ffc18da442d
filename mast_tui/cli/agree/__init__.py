"""``mast-tui agree``: how far annotators agree, and how good a judge is."""
