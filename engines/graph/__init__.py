"""The Value graph itself: how it prints and how it is drawn."""
