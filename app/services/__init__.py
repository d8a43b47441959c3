"""What the routes use: services of one gateway process, and how they are wired."""
