"""Plugins that tests load by their files, as users would write them."""
