updatedb.plocate -l 0 --prunepaths "" --prune-bind-mounts 0 -U $PWD/share -o $PWD/share.db && plocate -d share.db -c letter7.odt
