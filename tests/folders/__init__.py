"""Folders of crawls as versions of skitter left them, one for each format: every later version must open them.

`python -m tests.folders` makes the one of this version. It is made with the version's release, and then kept."""
