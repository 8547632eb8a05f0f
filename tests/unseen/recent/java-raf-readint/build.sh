javac Mesh.java Buffered.java
