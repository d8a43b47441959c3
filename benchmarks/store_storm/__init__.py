"""A storm over gateways and workers as processes of their own, whose store is slow, hangs, answers half or wrong, and
whose clocks are off.
"""
