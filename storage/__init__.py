"""The state that gateways and workers share: records, queue and progress; and the settings, logs and traces of every
process. Imports ``core``; knows no HTTP and runs no job.

upkeep/        reconciliation, garbage collection, retention, backup
repositories/  records and files of the store, a module a noun
queue/         queue, leases and progress, in Redis
store/         keys and bytes, in a folder or a bucket
process/       settings, logs, traces and attributes of a process
records.py     the records of the store
"""
