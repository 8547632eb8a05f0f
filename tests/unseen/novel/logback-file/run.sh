java -cp .:/usr/share/java/slf4j-api.jar:/usr/share/java/logback-classic.jar:/usr/share/java/logback-core.jar Server || exit 1
wc -l server.log
