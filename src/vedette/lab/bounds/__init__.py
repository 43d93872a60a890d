"""Bounds: deciders that see the world, its future too. They say how much there was to find; no policy may see it."""
