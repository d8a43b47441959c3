"""Store, queue and worker processes: what gateways and workers share, and what runs the jobs. Imports ``core``; knows nothing of HTTP.

worker/        the worker process: it alone is never imported by a gateway
upkeep/        reconciliation, garbage collection, retention, backup
repositories/  records and files of the store, a module a noun
queue/         queue, leases and progress, in Redis
store/         keys and bytes, in a folder or a bucket
"""
