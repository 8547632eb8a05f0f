mkdir certs requests
: > index.txt
echo 1000 > serial
cat > ca.cnf <<C
[ca]
default_ca = clients
[clients]
dir = .
new_certs_dir = certs
database = index.txt
serial = serial
certificate = ca.pem
private_key = ca.key
default_md = sha256
default_days = 365
unique_subject = no
policy = any
[any]
commonName = supplied
[req]
distinguished_name = name
[name]
C
openssl ecparam -name prime256v1 -genkey -noout -out ca.key
openssl req -x509 -new -key ca.key -subj "/CN=Clients" -days 3650 -config ca.cnf -out ca.pem
openssl ecparam -name prime256v1 -genkey -noout -out client.key
for n in $(seq 200); do
  openssl req -new -key client.key -subj "/CN=sensor$n" -config ca.cnf -out requests/$n.csr
done
