"""``vedette demo``: crawl and search a synthetic web on this machine, or compare policies on it."""
