octave-cli --no-init-file --no-gui track.m || exit 1
wc -l track.csv
