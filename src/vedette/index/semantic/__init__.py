"""Meaning of pages as vectors: a space learned from the pages themselves, and similarity in any such space."""
