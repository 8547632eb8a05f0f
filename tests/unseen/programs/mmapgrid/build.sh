javac Grid.java
