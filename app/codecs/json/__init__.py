"""JSON text of any request: decoded with errors that name the field, and, where it is large, a slice at a time."""
