"""The demo: wrong pairs, what they do to a model, and what a robust method makes of them, in three minutes."""
