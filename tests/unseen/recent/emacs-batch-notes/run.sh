exec emacs -Q --batch -l done.el
