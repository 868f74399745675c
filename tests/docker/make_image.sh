#!/bin/sh
# Makes an image of PostgreSQL 15 from Debian's packages, for machines that cannot reach an image registry.
# Usage: make_image.sh NAME. Needs root, debootstrap and a running Docker engine; takes a few minutes and 700 MB.
# DEBIAN_MIRROR names another mirror than debootstrap's own.
set -eu
name=${1:?usage: make_image.sh NAME}
here=$(cd "$(dirname "$0")" && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=postgresql-15 bookworm "$root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >&2
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/archives/*.deb "$root"/usr/share/doc "$root"/usr/share/locale
install -m 0755 "$here/entrypoint.sh" "$root/entrypoint.sh"
tar -C "$root" -c . | docker import --change 'ENTRYPOINT ["/entrypoint.sh"]' --change 'EXPOSE 5432' - "$name"
