printf '\000\003\015\100' > mesh.bin
head -c 4000000 /dev/urandom >> mesh.bin
