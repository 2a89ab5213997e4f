#!/bin/sh
# root.sh NODE TARBALL ROOT: lays out the root file system of the image in the folder ROOT: the program NODE, the libraries that
# it is linked with, and the app of TARBALL. No shell, no package manager, nothing that runs but Node.
# deploy/Dockerfile uses it, and so does npm run try-package -- --sandbox.
set -eu
node=$1 tarball=$2 root=$3

mkdir -p "$root/usr/local/bin" "$root/app" "$root/data" "$root/etc" "$root/proc" "$root/dev"
cp -L "$node" "$root/usr/local/bin/node"
ldd "$node" | grep -o '/[^ ]*' | while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done
tar -xzf "$tarball" --strip-components=1 --no-same-owner -C "$root/app"
# Names are looked up as everywhere: /etc/hosts first, which the container engine writes.
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
echo 'pesit:x:10001:10001::/data:/usr/local/bin/node' >"$root/etc/passwd"
echo 'pesit:x:10001:' >"$root/etc/group"
chmod -R u=rwX,go=rX "$root"
