"""How is it found again? What of a page is indexed, what a query means, and what speaks for each page that matches."""
