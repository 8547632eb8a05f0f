mkdir idx
cat > sphinx.conf <<C
source mails {
  type = xmlpipe2
  xmlpipe_command = cat $PWD/mails.xml
}
index mails {
  source = mails
  path = $PWD/idx/mails
}
indexer {
  mem_limit = 64M
}
C
awk 'BEGIN { print "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<sphinx:docset>\n<sphinx:schema><sphinx:field name=\"subject\"/><sphinx:field name=\"content\"/></sphinx:schema>";
  for (n = 1; n <= 25000; n++) { printf "<sphinx:document id=\"%d\"><subject>mail %d</subject><content>", n, n; for (i = 0; i < 60; i++) printf "word%d ", (n * 37 + i * i * 11) % 9000; print "</content></sphinx:document>" }
  print "</sphinx:docset>" }' > mails.xml
