mkdir work
