"""What a judge found in more traces than one workspace should hold: Parquet files in a folder."""
