"""The page of the grand table: every run, to sort, to filter and to look into."""
