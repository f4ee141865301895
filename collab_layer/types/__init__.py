"""Frozen values; nothing enters but fields, nothing leaves but the value."""
