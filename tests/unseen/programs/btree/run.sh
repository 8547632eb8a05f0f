exec java -cp . Tree
