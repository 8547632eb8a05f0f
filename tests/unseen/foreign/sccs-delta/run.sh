n=1
while [ $n -le 60 ]; do
    sccs get -s -e plan.txt
    echo "change $n" >> plan.txt
    sccs delta -s -y"change $n" plan.txt || exit 1
    n=$((n + 1))
done
ls -l SCCS/s.plan.txt
