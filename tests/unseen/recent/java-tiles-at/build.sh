javac Tiles.java
