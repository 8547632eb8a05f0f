export UNISON="$PWD/state"
unison near far -batch -silent -auto || exit 1
diff -r near far && du -s far
