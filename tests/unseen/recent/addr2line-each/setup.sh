nm engine | awk '/ T step/ { print $1 }' | awk 'NR % 3 == 0' > addresses
