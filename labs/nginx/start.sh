#!/bin/sh
# Fills in nginx.conf and becomes nginx. From the environment: ADDRESS, PORT, WORK, WORKERS; of each worker FILES (default: as
# many as it may have) and CONNECTIONS (default: as many, at most 262,144, since nginx takes 400 bytes for each at once); IDLE;
# CERTIFICATE: with TLS, and the folder for the certificate.
set -eu
PATH=$PATH:/usr/sbin:/sbin
folder=$(dirname "$0")
place=$WORK/nginx-$ADDRESS
files=$(ulimit -H -n)
# The kernel's own limit, where the process has none.
[ "$files" != unlimited ] || files=$(cat /proc/sys/fs/nr_open)
files=${FILES:-$files}
connections=${CONNECTIONS:-$((files < 262144 ? files : 262144))}
mkdir -p "$WORK"
ssl=
if [ -n "${CERTIFICATE-}" ]; then
    sh "$folder/../certificate.sh" "$CERTIFICATE"
    ssl="ssl http2"
fi
sed -e "s|@PLACE@|$place|g" -e "s|@ADDRESS@|$ADDRESS|" -e "s|@PORT@|$PORT|" -e "s|@WORKERS@|$WORKERS|" \
    -e "s|@SSL@|$ssl|" -e "s|@CERTIFICATE@|${CERTIFICATE-}|" -e "${ssl:+s|#TLS ||}" -e "s|@FILES@|$files|" -e "s|@CONNECTIONS@|$connections|" -e "s|@IDLE@|${IDLE:-1d}|" \
    "$folder/nginx.conf" > "$place.conf"
exec nginx -e stderr -c "$place.conf"
