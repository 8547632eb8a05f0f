for c in certs/*.pem; do
    keytool -importcert -noprompt -keystore trust.p12 -storepass changeit -alias $(basename $c .pem) -file $c 2>/dev/null || exit 1
done
