"""Learning of labels of which a document may have several: a two-class problem a label, side by side."""
