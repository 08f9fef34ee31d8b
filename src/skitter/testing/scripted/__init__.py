"""Pages that are nothing without their scripts: ways out of a browser, hostile ones, links that come late."""
