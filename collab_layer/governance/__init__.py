"""Pure rules about who may see what, and what depends on what."""
