"""What outlives a screen."""
