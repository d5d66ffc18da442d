"""The walk over folders to files of traces, the reading of files, and the caches of results."""
