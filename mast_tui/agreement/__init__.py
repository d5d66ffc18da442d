"""How far annotators agree: coefficients, and the study that reads a workspace."""
