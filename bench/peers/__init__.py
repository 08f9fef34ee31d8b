"""Other crawlers, each a script for an environment of its own; never imported by the rest."""
