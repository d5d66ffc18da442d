"""Questions and choices that lie over a screen."""
