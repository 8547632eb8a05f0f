mkdir incoming
for n in $(seq 1200); do
  case $((n % 5)) in
    0) printf '%s' '%PDF-1.4 of some text' ;;
    1) printf 'RIFF....WAVEfmt and more' ;;
    2) printf '\211PNG........IHDR and more' ;;
    3) printf 'GIF89a with some more bytes' ;;
    4) printf 'text' ;;
  esac > incoming/$n
done
