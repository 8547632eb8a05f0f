git init -q repo
cd repo
git config user.name n; git config user.email n@example.org
for d in $(seq 90); do mkdir dir$d; for n in $(seq 70); do echo "$d $n" > dir$d/file$n.txt; done; done
git add . && git commit -q -m all
