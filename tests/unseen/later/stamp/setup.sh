seq 1000 | awk "{ print \"name=customer \" \$1; for (i = 0; i < 20; i++) print \"field\" i \"=\" \$1 * i; print \"--\" }" > forms.in
