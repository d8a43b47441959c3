"""Jobs: submit, list, show, cancel, follow, and what they leave."""
