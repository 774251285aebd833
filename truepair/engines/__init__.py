"""Features → similarity: encoders, pooling, engines."""
