exec rg -j 16 -c 'brown dog|99 the quick' tree
