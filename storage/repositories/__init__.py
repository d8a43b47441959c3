"""Repositories: the records and files of the store, a module a noun."""
