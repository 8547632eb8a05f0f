exec ./collector
