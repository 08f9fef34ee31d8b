"""When pages are visited again, and what visits teach."""
