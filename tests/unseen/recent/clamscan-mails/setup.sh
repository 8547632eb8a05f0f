mkdir mails sig
for n in $(seq 700); do
  { printf 'From: a%d@example.org\nSubject: mail %d\n\n' $n $n; head -c 3000 /dev/urandom | base64; } > mails/$n.eml
done
awk 'BEGIN { srand(3); for (n = 0; n < 60000; n++) { s = ""; for (i = 0; i < 4; i++) s = s sprintf("%08x", int(rand() * 2147483647)); printf "%s:%d:Test.Sample-%d\n", s, 1000 + n % 50000, n } }' > sig/local.hdb
