"""The layer as tools of the Model Context Protocol."""
