"""One file per command of `zoomgrad`, which registers itself with `harness.cli.app`.

What several commands share is in `harness.cli`; the commands' order and short help are in `harness.cli.COMMANDS`.
"""
