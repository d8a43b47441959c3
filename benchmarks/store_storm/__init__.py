"""A storm over gateways and workers as processes of their own: the store is slow, hangs, answers half or wrong, and
clocks are off.
"""
