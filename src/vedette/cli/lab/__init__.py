"""``vedette lab``: experiments, reports, serving a synthetic web and judging crawlers."""
