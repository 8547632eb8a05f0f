exec /usr/bin/java -cp start:app.jar Start
