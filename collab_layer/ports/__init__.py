"""What we ask of the outside; signatures only."""
