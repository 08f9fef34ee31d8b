"""HTML and style sheets: bytes to titles, links and texts."""
