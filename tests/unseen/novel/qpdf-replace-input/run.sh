for f in form*.pdf; do
  qpdf --linearize --replace-input $f || exit 1
done
ls -l | awk '{ n += $5 } END { print n }'
