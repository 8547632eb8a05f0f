javac Flags.java
