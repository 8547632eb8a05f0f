for report in reports/*.pdf; do
    zip -q year.zip "$report"
done
unzip -l year.zip | tail -n 1
