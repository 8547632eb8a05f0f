javac Pool.java
