mkdir -p mail/cur mail/new mail/tmp copy
for n in $(seq 700); do
  printf 'From: a%d@example.org\nMessage-ID: <%d@example.org>\nSubject: mail %d\n\nHello %d\n' $n $n $n $n > mail/cur/1700000000.$n.host:2,S
done
cat > mbsyncrc <<C
MaildirStore near
Path ./
Inbox ./mail

MaildirStore far
Path ./copy/
Inbox ./copy/inbox

Channel mirror
Far :far:
Near :near:
Sync Push
Create Far
SyncState ./state-
C
