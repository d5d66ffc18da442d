"""The study screen, the form that sets one up, and the guidelines of each mode."""
