"""The examples of `examples/`, run as their readers would run them."""
