"""What the workspace knows beside events."""
