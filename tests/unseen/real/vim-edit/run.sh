vim -Nu NONE -es -c '%s/^77 some/77 other/' -c 'wq' big.txt; grep -c '^77 other' big.txt
