"""Keys of colleagues, made and revoked over HTTP: they label, and remove nothing."""
