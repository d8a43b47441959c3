"""The machine learning backend of Label Studio: predictions for its tasks, and training on people's labels there."""
