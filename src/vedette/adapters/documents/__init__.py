"""Documents: extract title and text of PDF, office, EPUB and Markdown files in a confined child process."""
