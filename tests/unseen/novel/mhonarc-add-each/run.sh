for m in mails/*; do
  mhonarc -quiet -add -outdir "$PWD/archive" < $m || exit 1
done
ls archive | wc -l
