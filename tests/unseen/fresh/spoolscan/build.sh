javac Spool.java
