"""When to look again? What is known of pages that were fetched, and the policies that say when each is due."""
