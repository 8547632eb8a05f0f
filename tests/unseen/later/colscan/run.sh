exec ./colscan
