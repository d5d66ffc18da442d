"""How runs fail: modes in failed against successful traces."""
