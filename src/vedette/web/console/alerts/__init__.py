"""Console pages for alerts on new pages."""
