"""Benchmarks beside peers and trials by kill; each is a command, and `bench/README.md` says which."""
