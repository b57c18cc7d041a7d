"""A run over many machines: blocks of one interpreter, which dask.distributed carries to hosts.

    plan -> units -> collecting -> [dask] -> carrier -> host process -> schedule -> isolated workers
                     collecting <- [dask] <- the records of a whole unit

A dask worker measures nothing: its task starts a *host process*, an ordinary harness that measures one unit. dask
chooses the host, and repeats the unit elsewhere if the host is lost. Without `--on`, nothing of dask is imported.
"""
