"""What changed settings do to URLs that are known."""
