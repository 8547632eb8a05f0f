exec java -XX:TieredStopAtLevel=1 -cp . Counters
