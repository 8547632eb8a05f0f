goaccess access.log --log-format=COMBINED --no-progress -o report.json && ls -l report.json
