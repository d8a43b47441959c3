"""Methods that ``auto`` tries beside the supervised and the transductive SVM."""
