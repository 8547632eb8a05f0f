exec java Mesh
