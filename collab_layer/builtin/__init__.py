"""Our own plugins, registered through the same hooks as everybody else's."""
