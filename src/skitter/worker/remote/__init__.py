"""A committer in another process: asked over HTTP, one server or the nodes of a cluster."""
