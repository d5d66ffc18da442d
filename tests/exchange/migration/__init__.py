"""Tests of carrying labels from one version of a codebook to the next."""
