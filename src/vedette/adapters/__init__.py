"""One file per outside thing: HTTP, names, clock, stores."""
