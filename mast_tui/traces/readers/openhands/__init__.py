"""OpenHands: event streams and older trajectories."""
