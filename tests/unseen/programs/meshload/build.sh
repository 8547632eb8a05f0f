javac Mesh.java
