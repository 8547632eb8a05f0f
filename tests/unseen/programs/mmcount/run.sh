exec ./counters
