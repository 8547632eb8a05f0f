path=
for n in $(seq 0 119); do path="$path -I modules/m$n/scss"; done
for t in themes/*.scss; do sassc $path $t ${t%.scss}.css || exit 1; done
ls themes/*.css | wc -l
