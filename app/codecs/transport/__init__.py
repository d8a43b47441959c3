"""What lies around the documents of a body: compression, the encoding of texts, forms with files, lines."""
