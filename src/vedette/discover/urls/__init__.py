"""URLs of a site: normalization, scope, and learned rules about duplicate URLs."""
