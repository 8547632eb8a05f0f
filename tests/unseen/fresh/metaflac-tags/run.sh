n=1
for f in track*.flac; do
    for t in ARTIST=Someone ALBUM=Collected "TITLE=Track $n" TRACKNUMBER=$n DATE=2026 GENRE=Noise; do
        metaflac --dont-use-padding "--set-tag=$t" $f || exit 1
    done
    n=$((n + 1))
done
metaflac --list --block-type=VORBIS_COMMENT track01.flac | grep GENRE
