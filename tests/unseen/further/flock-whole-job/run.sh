ls scans/*.txt | xargs -P 4 -n 1 sh job.sh; wc -l < report.csv
