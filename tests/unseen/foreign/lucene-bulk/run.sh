exec java -XX:TieredStopAtLevel=1 -cp /usr/share/java/lucene-core-8.7.0.jar:/usr/share/java/lucene-analyzers-common-8.7.0.jar:. Index
