exec /usr/bin/python3 - <<'P'
import random
random.seed(1)
with open("cohort.vcf", "w") as out:
    out.write("##fileformat=VCFv4.2\n")
    for c in range(1, 23):
        out.write("##contig=<ID=%d,length=50000000>\n" % c)
    out.write('##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">\n')
    out.write("#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t" + "\t".join("S%d" % n for n in range(120)) + "\n")
    for c in range(1, 23):
        for n in range(1500):
            g = "\t".join(random.choices(("0/0", "0/1", "1/1"), k=120))
            out.write("%d\t%d\trs%d\tA\tG\t50\tPASS\t.\tGT\t%s\n" % (c, n * 1000 + 1, c * 10000 + n, g))
P
