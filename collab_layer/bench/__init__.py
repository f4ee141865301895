"""What the layer is worth, measured through its public door."""
