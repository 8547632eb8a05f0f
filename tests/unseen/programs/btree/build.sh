javac Tree.java
