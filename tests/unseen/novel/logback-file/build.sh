javac -cp /usr/share/java/slf4j-api.jar Server.java
