for c in $(seq 22); do
  vcftools --vcf cohort.vcf --chr $c --recode --out chr$c || exit 1
done 2> vcftools.log
ls chr*.vcf | wc -l
