# A repository: commits, a branch, a merge, a clone.
# needs: git
export GIT_CONFIG_NOSYSTEM=1 HOME="$PWD" GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.c GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.c
case $1 in
setup) mkdir repo && cd repo && for i in $(seq 200); do seq "$i" 300 > "file$i"; done ;;
run)
    cd repo
    git init -q .
    git add .
    git commit -q -m one
    git checkout -q -b other
    seq 400 > file1
    git commit -q -a -m two
    git checkout -q -
    git merge -q other
    cd ..
    git clone -q repo copy
    git -C copy log --stat > log
    ;;
esac
