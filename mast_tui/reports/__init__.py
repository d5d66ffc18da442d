"""Reports on figures: written once, and shown by any renderer."""
