"""One peer a file. Each imports its library at the top, as its users do, so only `PeerEngine.model` imports these."""
