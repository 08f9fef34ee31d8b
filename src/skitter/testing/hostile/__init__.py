"""The hostile web: hosts that break every rule there is, each with the outcome that it must come to."""
