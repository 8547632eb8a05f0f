javac Orders.java
