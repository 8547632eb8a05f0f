mkdir mails archive
for n in $(seq 100); do
  { printf 'From: Person %d <p%d@example.org>\nDate: Mon, 2 Jan 2023 10:%02d:00 +0000\nMessage-ID: <%d@example.org>\nSubject: subject %d\n\n' $n $n $((n % 60)) $n $((n / 4))
    seq 40; } > mails/$(printf %03d $n)
done
