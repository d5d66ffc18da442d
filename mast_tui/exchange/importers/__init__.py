"""Labels of other tools and papers."""
