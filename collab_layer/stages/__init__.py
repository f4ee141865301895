"""The stages: pure functions from values to values; no clock, no I/O, no randomness."""
