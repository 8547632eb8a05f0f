mkdir out && javac -d out src/p/*.java && jar cfe app.jar p.Main -C out . && java -jar app.jar
