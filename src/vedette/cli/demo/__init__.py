"""``vedette demo``: a synthetic web, crawled and searched on this machine, or used to compare policies."""
