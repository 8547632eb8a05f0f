# the sequences of the hits of a search
import sys
from Bio import SeqIO

hits = ["P%05d" % (n * 7919 % 25000) for n in range(40)]
if sys.argv[1] == "parse":
    for hit in hits:
        for record in SeqIO.parse("proteins.fa", "fasta"):
            if record.id == hit:
                print(hit, len(record))
                break
else:
    records = SeqIO.index("proteins.fa", "fasta")
    for hit in hits:
        print(hit, len(records[hit]))
