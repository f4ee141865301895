"""The command line `collab`."""
