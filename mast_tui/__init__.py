"""Label agent traces with a failure taxonomy in the terminal."""

__version__ = "0.2.0"
