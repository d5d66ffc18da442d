"""MAST-Data, in JSON and Parquet."""
