mkdir events
awk 'BEGIN { for (n = 0; n < 250; n++) { f = sprintf("events/e%04d", n); for (i = 0; i < 4500; i++) printf "event %d of part %d\n", i, n > f; close(f) } }'
