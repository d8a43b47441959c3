"""Models as files that need no Halfmoon: an archive that predicts with NumPy alone, and ONNX."""
