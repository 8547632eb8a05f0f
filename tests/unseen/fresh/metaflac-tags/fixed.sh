n=1
for f in track*.flac; do
    metaflac --dont-use-padding --set-tag=ARTIST=Someone --set-tag=ALBUM=Collected "--set-tag=TITLE=Track $n" --set-tag=TRACKNUMBER=$n --set-tag=DATE=2026 --set-tag=GENRE=Noise $f || exit 1
    n=$((n + 1))
done
metaflac --list --block-type=VORBIS_COMMENT track01.flac | grep GENRE
