"""Learning from clicks: click models, page quality, off-policy estimates and the rollback guard."""
