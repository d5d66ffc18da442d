"""SWE-agent and mini-SWE-agent trajectories."""
