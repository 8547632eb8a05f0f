mkdir store
cat > mosquitto.conf <<C
listener 18830 127.0.0.1
allow_anonymous true
user root
persistence true
persistence_location $PWD/store/
autosave_on_changes true
autosave_interval 1
log_dest file $PWD/mosquitto.log
max_queued_messages 0
C
awk 'BEGIN { for (n = 1; n <= 1000; n++) printf "{\"meter\": %d, \"kwh\": %d, \"place\": \"%060d\"}\n", n, n * 19, n }' > now
