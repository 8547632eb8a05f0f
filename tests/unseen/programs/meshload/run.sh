exec java -cp . Mesh
