"""What a run made of its pairs: the division by epoch, the indicators behind it, examples, and the papers' figures."""
