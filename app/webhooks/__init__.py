"""Webhooks: register, list and delete addresses that are told of what happens."""
