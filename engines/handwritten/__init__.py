"""C by hand: no Value graph, but what a good engineer writes for an MLP. Same loss, same bits."""
