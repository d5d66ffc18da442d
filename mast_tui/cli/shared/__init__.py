"""The parts that commands share: options, the viewer, and outputs."""
