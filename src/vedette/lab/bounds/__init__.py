"""Upper bounds of the lab: oracles that see the world, also its future, and show the best that a policy could reach."""
