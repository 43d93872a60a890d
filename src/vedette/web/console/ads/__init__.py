"""Console pages for ads (sponsored results): campaigns, charts and forms."""
