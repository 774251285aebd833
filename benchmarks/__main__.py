"""All benchmarks, one table after the other: `python -m benchmarks`."""

from benchmarks import bench_ranks, bench_training

print("Training\n")
bench_training.main()
print("\nRanks\n")
bench_ranks.main()
