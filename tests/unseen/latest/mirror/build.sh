javac -d . Mirror.java
