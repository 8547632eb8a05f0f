dbfcreate wells.dbf -s name 20 -n depth 8 2 -n owner 6 0
