"""One file per command of `zoomgrad`; importing it registers the command with `harness.cli.app`.

What several commands share is in `harness.cli`; the commands' order is in `harness.cli.COMMANDS`.
"""
