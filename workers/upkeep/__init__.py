"""What keeps a store in order: reconciliation, retention, backup."""
