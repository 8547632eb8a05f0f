exec ./cachequota cache
