mkdir certs nss
certutil -N -d sql:nss --empty-password
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -subj /CN=ca -days 900
openssl ecparam -name prime256v1 -genkey -noout -out host.key
for n in $(seq 1 120); do
    openssl req -new -x509 -key host.key -subj /CN=partner$n -days 900 -set_serial $((1000 + n)) -outform DER -out certs/partner$n.der
done
