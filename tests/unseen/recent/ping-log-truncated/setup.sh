cat > rotate.conf <<C
$PWD/ping.log {
  copytruncate
  rotate 3
  size 1
}
C
