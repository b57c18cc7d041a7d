"""The limit rows: no Value graph, but the C that a good engineer writes by hand for an MLP. Same loss, same bits."""
