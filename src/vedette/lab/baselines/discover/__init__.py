"""Discovery policies from the literature that the lab compares with."""
