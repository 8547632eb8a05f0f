# restore the pages that somebody asks for
while read -r page; do
  tar xzf site.tar.gz "$page" || exit 1
done < wanted
ls site | wc -l
