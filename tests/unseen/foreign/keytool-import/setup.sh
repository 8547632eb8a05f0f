mkdir certs
openssl ecparam -name prime256v1 -genkey -noout -out host.key
for n in $(seq 1 14); do
    openssl req -new -x509 -key host.key -subj /CN=partner$n -days 900 -set_serial $((1000 + n)) -out certs/partner$n.pem
done
