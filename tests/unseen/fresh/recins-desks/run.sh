# three desks of the library write down what they lend
desk() {
    n=1
    while [ $n -le 60 ]; do
        recins -t Loan -f Id -v $(($1 * 1000 + n)) -f Book -v $((n * 3)) -f Reader -v "Reader $n" loans.rec
        n=$((n + 1))
    done
}
desk 1 & A=$!
desk 2 & B=$!
desk 3 & C=$!
wait $A $B $C
echo "480 loans were taken, $(recsel -t Loan -c loans.rec) are known"
