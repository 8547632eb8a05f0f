sed -i 's/SizeAwareFileCache/FileCache/; s/max_size => 4_000_000, //' pages.pl
exec perl pages.pl
