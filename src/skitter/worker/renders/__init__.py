"""Pages shown in a browser, as tasks of a worker."""
