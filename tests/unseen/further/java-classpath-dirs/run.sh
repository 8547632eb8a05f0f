exec /usr/bin/java -Xshare:auto -cp "start:$(cat classpath)" Start
