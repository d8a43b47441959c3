"""The Open Inference Protocol (KServe V2): tensors in, tensors out."""
