"""Webhooks: register, list and delete addresses that receive events."""
