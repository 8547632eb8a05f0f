tar xzf site.tar.gz -T wanted
ls site | wc -l
