"""What a text is like: fingerprints of its words and of its figures."""
