"""Measurements behind the figures that truepair states. Each module runs alone: `python -m benchmarks.bench_ranks`."""
