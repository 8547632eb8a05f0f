exec /usr/bin/java -cp . Inbox close
