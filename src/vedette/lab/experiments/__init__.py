"""Questions to worlds: each file asks one, and says by which numbers it is answered."""
