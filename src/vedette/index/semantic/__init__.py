"""Page vectors for comparing pages by meaning: a space learned from the pages, and similarity in any space."""
