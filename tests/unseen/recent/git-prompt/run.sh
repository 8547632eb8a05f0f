cd repo || exit 1
# a shell whose prompt shows the state of the tree after each command
for n in $(seq 60); do
  echo "step $n" >> dir1/file1.txt
  printf '%s\n' "$(git branch --show-current)$(git status --porcelain | wc -l)"
done | tail -n 1
