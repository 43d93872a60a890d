"""Upper bounds of the lab: oracles that see the world, including its future, and show the best possible result."""
