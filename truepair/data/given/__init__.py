"""What somebody else says of the pairs: which are known to match, and scores by another model."""
