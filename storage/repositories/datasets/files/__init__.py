"""Files of a dataset: arrays, rows, ids and how labels were come by, written as documents come and read by
memory-mapping.
"""
