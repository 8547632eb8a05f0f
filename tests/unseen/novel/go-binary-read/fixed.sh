exec ./ticks buffered
