awk '/^#/ { head = head $0 "\n"; next } $1 != c { close(o); c = $1; o = "chr" c ".recode.vcf"; printf "%s", head > o } { print > o }' cohort.vcf
ls chr*.vcf | wc -l
