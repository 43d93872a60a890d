"""The robots exclusion protocol: robots.txt rules and their state per origin, robots meta tags and headers."""
