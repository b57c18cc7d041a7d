"""Code inside a profiled worker: the training under observation, and the worker's own probes.

The profilers that start such a worker and read its figures are in `harness.profile`; timed workers are in
`harness.worker.measure`.
"""
