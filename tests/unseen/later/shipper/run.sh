# the timer starts the shipper; in between the application logs and the log is rotated
app() { seq -f "$1 %06.0f served in 17 ms with status 200" $2; }
app monday 60000 > app.log
./shipper app.log
sleep 0.2
app late 2000 >> app.log
./shipper app.log
mv app.log app.log.1
app tuesday 90000 > app.log
sleep 0.2
./shipper app.log
wc -l collected
