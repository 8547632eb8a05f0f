javac Audit.java
