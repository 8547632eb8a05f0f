exec ./stations
