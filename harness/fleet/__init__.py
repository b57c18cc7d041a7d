"""A run over many machines: dask.distributed carries each block to a host.

    plan -> collecting -> [dask] -> host process -> schedule -> isolated workers
            collecting <- [dask] <- the records of a whole block

A dask worker measures nothing: its task starts a *host process*, an ordinary harness that measures one block. dask
chooses the host, and repeats the block elsewhere if the host is lost. Without `--on`, nothing of dask is imported.
"""
