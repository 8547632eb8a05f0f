seq 1200000 | awk "{ print (\$1 * 7919) % 999983, \"host\" \$1 % 5000 \".example.com\" }" > known
