"""One peer a file. Each imports its library at the top, as its users do, so only `Peer._load` imports these."""
