"""Maps of your own: what one is, and all the files that they come in."""
