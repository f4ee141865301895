"""Run migrations on the connection the layer hands over."""

from __future__ import annotations

from alembic import context

from collab_layer.graph.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
