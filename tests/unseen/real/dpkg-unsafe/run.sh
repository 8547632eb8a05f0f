dpkg --force-unsafe-io --root=$PWD/root --force-not-root,script-chrootless --log=$PWD/dpkg.log -i b.deb
