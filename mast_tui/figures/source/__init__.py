"""The arrays of a workspace that figures are computed from."""
