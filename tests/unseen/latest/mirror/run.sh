exec java -XX:TieredStopAtLevel=1 -cp . Mirror from to
