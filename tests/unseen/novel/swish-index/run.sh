swish-e -v 1 -i docs -f docs.index || exit 1
swish-e -f docs.index -m 3 -w w17 and w23
