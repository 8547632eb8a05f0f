while read -r n rest; do echo "$n,$rest" >> out.csv; done < in
