"""A run over many machines: blocks of one interpreter, carried to hosts by dask.distributed.

    plan -> units -> placing -> [dask] -> carrier -> host process -> schedule -> isolated workers
                  <- collecting <- one line per record, as it ends <-

`collecting` is the loop on the client, and knows dask only as a `cluster.Cluster`. A dask worker measures nothing: its
task starts a *host process*, an ordinary harness that carries out its part of the plan and prints each record.
Without `--on`, nothing of dask is imported. Modules that import it are `dask_cluster`, `starting`, `worker` and
`scheduler`, and `carrier` inside a dask worker.
"""
