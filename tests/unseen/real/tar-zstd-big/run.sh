tar --zstd -cf out.tar.zst big && tar --zstd -tvf out.tar.zst
