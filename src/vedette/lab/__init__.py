"""How do we know? Made and recorded webs, judges and comparisons; it drives the ring that runs live."""
