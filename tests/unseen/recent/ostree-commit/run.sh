exec ostree --repo=repo commit -b stable -s "first" tree
