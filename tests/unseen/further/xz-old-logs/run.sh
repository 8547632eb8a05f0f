# only the compressed logs stay
nice xz -1 -T1 logs/day*.log || exit 1
ls logs | wc -l
