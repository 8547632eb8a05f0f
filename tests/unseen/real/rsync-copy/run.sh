rsync -a src/ dst/
