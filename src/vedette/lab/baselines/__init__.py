"""Published policies and models that only the lab runs, one per file under its name in the literature."""
