"""The machine learning backend of Label Studio: predictions for its tasks, and training on what people have labeled
there.
"""
