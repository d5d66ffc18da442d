"""Agreement on places: which spans and quotes were marked."""
