exec java -cp . Grid
