mhonarc -quiet -add -outdir "$PWD/archive" mails/* || exit 1
ls archive | wc -l
