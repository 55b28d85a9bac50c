"""Numbered schema files of the session store."""
