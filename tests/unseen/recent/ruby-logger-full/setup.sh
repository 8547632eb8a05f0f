mkdir inbox
awk 'BEGIN { for (n = 1; n <= 22000; n++) { f = sprintf("inbox/%05d.json", n);
  printf "{\"id\": %d, \"customer\": \"c%d\", \"lines\": [{\"price\": %d, \"count\": 2}, {\"price\": 5, \"count\": %d}]}\n", n, n % 400, n % 90, n % 7 > f; close(f) } }'
