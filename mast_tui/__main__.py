"""Run the command line with ``python -m mast_tui``."""

from mast_tui.cli import main

if __name__ == "__main__":
    main()
