exec ./snap
