exec java -XX:TieredStopAtLevel=1 Spool
