"""The OpenAPI document of the service, and its examples."""
