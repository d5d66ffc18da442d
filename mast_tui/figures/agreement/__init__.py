"""Agreement of annotators on whole traces."""
