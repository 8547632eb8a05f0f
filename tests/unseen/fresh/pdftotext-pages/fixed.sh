mkdir pages
# pages are separated by form feeds
pdftotext -layout manual.pdf - | awk -v RS='\f' 'length > 1 { f = "pages/" NR ".txt"; printf "%s\f", $0 > f; close(f) }'
cat pages/*.txt | wc
