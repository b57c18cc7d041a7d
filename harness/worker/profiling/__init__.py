"""Code inside a profiled worker: the training under observation, the worker's own probes, and instruction counters.

The profilers that start such a worker and read its figures are in `harness.profile`; timed workers are in
`harness.worker.measure`.
"""
