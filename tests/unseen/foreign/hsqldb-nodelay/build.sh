javac -cp /usr/share/java/hsqldb.jar Stock.java
