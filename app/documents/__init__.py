"""Documents of a dataset as they were sent: pages, filters, predictions of a model."""
