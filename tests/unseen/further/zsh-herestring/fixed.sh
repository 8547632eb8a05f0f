exec /usr/bin/zsh -f fixed.zsh
