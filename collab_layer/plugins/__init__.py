"""Plugins: what they describe, how they are found, how they are checked."""
