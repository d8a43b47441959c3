"""Review of labels and models by people: labels to doubt, and audits of models by random samples."""
