"""The OpenAPI document: what the routes cannot say of themselves, and examples."""
