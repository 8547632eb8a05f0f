for c in certs/*.der; do
    certutil -A -d sql:nss -n $(basename $c .der) -t P,, -i $c || exit 1
done
certutil -L -d sql:nss | grep -c partner
