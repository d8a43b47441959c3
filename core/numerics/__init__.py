"""What all mathematics here stands on: compiled loops over vectors, elementary functions, dense linear algebra."""
