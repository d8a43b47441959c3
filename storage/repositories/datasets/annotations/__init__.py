"""What people do with the documents of a dataset: annotations, the labels that follow from them, suggestions,
audits."""
