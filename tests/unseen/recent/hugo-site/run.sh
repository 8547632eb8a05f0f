HUGO_CACHEDIR=$PWD/cache exec hugo --quiet
