exec java -cp . Pool
