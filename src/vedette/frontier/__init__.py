"""Which unseen URL first? The frontier of every host, and the policies that say what a first fetch is worth."""
