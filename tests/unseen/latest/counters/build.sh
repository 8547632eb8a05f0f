javac -d . Counters.java
