exec java -Xshare:auto -cp . Rates
