for f in in/*; do cp "$f" out/ && sync || exit 1; done
