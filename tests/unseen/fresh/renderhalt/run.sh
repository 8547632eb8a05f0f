java -XX:TieredStopAtLevel=1 Render || exit 1
ls work | wc -l
