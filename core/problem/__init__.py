"""The two-class problem that every solver takes, and the result that every solver returns."""
