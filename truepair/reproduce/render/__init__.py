"""Records → the Markdown and the pictures that stand in the documentation."""
