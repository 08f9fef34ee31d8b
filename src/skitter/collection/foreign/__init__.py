"""Archives that others made, as readers see them."""
