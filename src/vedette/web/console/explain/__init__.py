"""Console texts that explain why a URL is fetched or not."""
