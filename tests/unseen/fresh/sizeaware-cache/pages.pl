#!/usr/bin/perl
# Keeps rendered pages in a cache on disk that must not grow beyond its limit.
use strict;
use warnings;
use Cache::SizeAwareFileCache;

my $cache = Cache::SizeAwareFileCache->new({
    namespace => "pages", cache_root => "cache", max_size => 4_000_000, default_expires_in => 3600,
});
for my $n (1 .. 200) {
    my $page = $n * 7919 % 600;
    next if defined $cache->get("page$page");
    $cache->set("page$page", "<p>page $page</p>\n" x (50 + $page));
}
print $cache->size, " bytes\n";
