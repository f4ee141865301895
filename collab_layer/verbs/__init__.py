"""The verbs of the layer by room; `collab_layer.layer` puts them together."""
