"""Processes that run the jobs, with the cluster and the encoders of trainings. Imports ``storage`` and ``core``; knows
nothing of HTTP.

worker/    the worker process: it alone is never imported by a gateway
cluster/   trainings that several machines share, by Dask
encoders/  pre-trained encoders: vectors of texts
"""
