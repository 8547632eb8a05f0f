mkdir all
ln modules/*/scss/*.scss all
for t in themes/*.scss; do sassc -I all $t ${t%.scss}.css || exit 1; done
ls themes/*.css | wc -l
