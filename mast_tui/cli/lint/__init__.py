"""``mast-tui lint`` and ``mast-tui watch``: findings of a judge where nobody labels."""
