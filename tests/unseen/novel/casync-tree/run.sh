casync make --store=store.castr tree.caidx tree || exit 1
casync extract --store=store.castr tree.caidx back && diff -r tree back
