use strict;
use warnings;
use DB_File;
use Fcntl;
$DB_HASH->{nelem} = 200000;
$DB_HASH->{cachesize} = 64 << 20;
tie my %db, "DB_File", "customers.db", O_RDWR | O_CREAT, 0644, $DB_HASH or die $!;
$db{sprintf "customer-%07d", $_} = sprintf "%-300s", "Street " . $_ * 31 % 9999 for 1 .. 200000;
