"""Documents of a dataset as they were sent: pages, filters, what a model predicts of them."""
