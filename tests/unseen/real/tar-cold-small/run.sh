tar cf out.tar tree
