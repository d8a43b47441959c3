"""Processes that run the jobs, and what only trainings need. Imports ``storage`` and ``core``; knows nothing of HTTP.

worker/    the worker process: it alone is never imported by a gateway
cluster/   trainings that several machines share, by Dask
encoders/  pre-trained encoders: vectors of texts
"""
