"""The study screen, the form that sets up a study, and the guidelines of each mode."""
