#!/bin/sh
# certificate.sh FOLDER: makes cert.pem, key.pem and store.p12 (password "throng") there, a certificate for the addresses of a lab's processes that is signed
# by itself, unless the one that is there is valid for another day. Of several processes that start at once, the first makes it.
set -eu
mkdir -p "$1"
exec 9> "$1/lock"
flock 9
if openssl x509 -in "$1/cert.pem" -noout -checkend 86400 > /dev/null 2>&1; then exit 0; fi
names=$(seq -f 'IP:127.0.0.%g' -s , 16)
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost \
    -addext "subjectAltName=DNS:localhost,$names" -keyout "$1/key.pem" -out "$1/new.pem"
openssl pkcs12 -export -in "$1/new.pem" -inkey "$1/key.pem" -out "$1/store.p12" -passout pass:throng
mv "$1/new.pem" "$1/cert.pem"
