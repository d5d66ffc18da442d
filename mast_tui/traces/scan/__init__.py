"""From paths to traces: walking folders, telling what each file is, keeping what was found."""
