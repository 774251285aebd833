"""All benchmarks, one table after the other: `python -m benchmarks`."""

from benchmarks import bench_evaluation, bench_ranks, bench_training

for title, benchmark in (
    ("Training step", bench_training),
    ("Ranks of a similarity matrix", bench_ranks),
    ("Evaluation, from encodings to figures", bench_evaluation),
):
    print(f"\n{title}\n")
    benchmark.main()
