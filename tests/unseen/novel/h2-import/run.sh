exec java -cp .:/usr/share/java/h2.jar Shop
