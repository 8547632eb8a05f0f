exec ./tilecache cache
