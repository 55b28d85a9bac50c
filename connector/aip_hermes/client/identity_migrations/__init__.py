"""The schema of a file of identities, in numbered steps."""
