# the files of the release, one by one
export HGPLAIN=1 HGRCPATH=
mkdir release
hg -R repo manifest -r tip | head -n 30 | while read -r file; do
    hg -R repo cat -r tip "repo/$file" > "release/${file##*/}"
done
ls release | wc -l
