nice xz -1 -T1 --keep logs/day*.log || exit 1
sync logs/*.xz logs && rm logs/*.log
ls logs | wc -l
