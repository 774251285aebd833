"""The loop, its options, checkpoints, and the run folder."""
