javac Rates.java
