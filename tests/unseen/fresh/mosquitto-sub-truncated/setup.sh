printf 'listener 18833 127.0.0.1\nallow_anonymous true\nuser root\nmax_queued_messages 0\n' > mosquitto.conf
awk 'BEGIN { for (n = 1; n <= 4000; n++) printf "{\"door\": %d, \"state\": \"open\", \"at\": %d}\n", n % 12, 1790000000 + n }' > part
