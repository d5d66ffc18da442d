"""From one version of a codebook to the next: what was said under the old one, under the new."""
