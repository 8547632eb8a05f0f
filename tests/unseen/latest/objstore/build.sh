javac -d . Store.java
