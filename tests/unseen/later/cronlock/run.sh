for j in billing stock mail reports; do
    sh job.sh $j &
done
wait
wc -l < totals.txt
