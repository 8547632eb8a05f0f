seq 1 20000 | sed 's/$/ some words of an input line/' > in
