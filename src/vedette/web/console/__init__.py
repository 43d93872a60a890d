"""The operator's web console: pages that show what the engine does and why, and forms that change it."""
