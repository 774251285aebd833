"""Grids over method × noise × seed, and the tables made from them."""
