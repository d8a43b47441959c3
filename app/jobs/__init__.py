"""Training jobs: submit, list, show, cancel, follow; their traces and labels."""
