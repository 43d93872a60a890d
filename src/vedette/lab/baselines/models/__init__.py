"""Published models of page change that only the lab compares with."""
