javac Queue.java
