"""Soak and chaos: ``make prove-soak`` runs a week of fast time with every fault at once, then audits what is left."""
