git init -q repo
git -C repo fast-import --quiet < history
git -C repo rev-list --count main
git -C repo fsck --no-progress 2>&1 | head -n 3
