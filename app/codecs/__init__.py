"""Decoders of request bodies into documents: one module a format, each a push parser that holds no more than a block of
the body.
"""
