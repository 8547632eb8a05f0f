java -XX:TieredStopAtLevel=1 -cp . Import first &
P=$!
java -XX:TieredStopAtLevel=1 -cp . Import second
wait $P
tail -n 1 stock.log
