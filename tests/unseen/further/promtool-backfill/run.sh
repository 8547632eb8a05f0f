promtool tsdb create-blocks-from openmetrics metrics.om data > /dev/null || exit 1
promtool tsdb list data | wc -l
