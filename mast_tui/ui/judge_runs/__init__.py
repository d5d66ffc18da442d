"""The runs of judges: what they found, how they were answered, and two of them side by side."""
