"""Reports on figures, whose sentences and tables any renderer can show."""
