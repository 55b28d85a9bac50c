"""Numbered migrations of the runtime's store."""
