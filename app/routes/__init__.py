"""HTTP, and HTTP only: one module a noun."""
