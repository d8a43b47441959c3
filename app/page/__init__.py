"""The page for people, at ``/``: files that a browser runs as they are, without a build."""
