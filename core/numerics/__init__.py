"""The foundation of all mathematics here: compiled loops over vectors, elementary functions, dense linear algebra."""
