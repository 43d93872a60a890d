"""``vedette lab``: run experiments, write reports, serve a synthetic web and evaluate crawlers."""
