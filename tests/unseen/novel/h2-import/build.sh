javac Shop.java
