"""Read the text of a page: media type, charset, language, and dates."""
