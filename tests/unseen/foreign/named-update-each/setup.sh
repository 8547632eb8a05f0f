mkdir zones
: > named.log
cat > zones/dyn.test <<'Z'
$TTL 300
@ IN SOA ns.dyn.test. admin.dyn.test. 1 3600 900 86400 300
@ IN NS ns.dyn.test.
ns IN A 127.0.0.1
Z
cat > named.conf <<C
options {
    directory "$PWD/zones";
    pid-file "$PWD/named.pid";
    session-keyfile "$PWD/session.key";
    listen-on port 15353 { 127.0.0.1; };
    listen-on-v6 { none; };
    recursion no;
    notify no;
    managed-keys-directory "$PWD";
    dnssec-validation no;
};
logging {
    channel main { file "$PWD/named.log"; };
    category default { main; };
    category general { main; };
    category update { null; };
    category update-security { null; };
};
controls { };
zone "dyn.test" { type master; file "dyn.test"; allow-update { 127.0.0.1; }; };
C
sh updates.sh > updates
