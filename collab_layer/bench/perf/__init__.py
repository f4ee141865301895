"""How fast and how large the layer is, over graphs made from a seed."""
