exec /usr/bin/zsh -f classify.zsh
