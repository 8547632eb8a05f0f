exec ./ticks
