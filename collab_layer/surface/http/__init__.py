"""The layer over HTTP: JSON to layer calls to JSON."""
