javac Render.java
