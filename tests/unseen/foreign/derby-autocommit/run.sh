exec java -XX:TieredStopAtLevel=1 -cp /usr/share/java/derby.jar:/usr/share/java/derbyshared.jar:. Orders
