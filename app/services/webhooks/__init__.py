"""Delivery of webhooks: which addresses may be called, how messages are signed and sent, when they are tried again."""
