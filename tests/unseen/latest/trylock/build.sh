javac -d . Import.java
