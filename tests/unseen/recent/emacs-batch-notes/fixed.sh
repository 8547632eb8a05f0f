sed 's/^    (save-buffer)))/    ))\n(save-buffer)/' done.el > once.el
exec emacs -Q --batch -l once.el
