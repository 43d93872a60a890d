"""Parse HTML in one pass: tokenizer, tag handlers, head, main text, and the page that results."""
