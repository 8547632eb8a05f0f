fdupes -q -r photos > doubles
wc -l doubles
