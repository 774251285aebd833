"""The methods in anybody's training loop: `Criterion`, and adapters to the trainers of other libraries."""
