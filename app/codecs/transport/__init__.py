"""Wrappings of documents in a body: compression, the encoding of texts, forms with files, lines."""
