"""The SQLAlchemy store behind the layer: SQLite by default, PostgreSQL when users outgrow a machine."""
