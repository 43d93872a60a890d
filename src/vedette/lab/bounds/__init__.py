"""Upper bounds: oracles that see the world, also its future, and show how much a policy could reach at best."""
