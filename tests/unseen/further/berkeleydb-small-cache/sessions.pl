#!/usr/bin/perl
# Sessions of a web site in Berkeley DB, with transactions.
use strict;
use warnings;
use BerkeleyDB;

my $batch = shift;
my $env = BerkeleyDB::Env->new(-Home => 'env', -Cachesize => ($ARGV[0] // 256) << 10, -Flags => DB_CREATE | DB_INIT_TXN | DB_INIT_LOG | DB_INIT_MPOOL | DB_INIT_LOCK)
    or die $BerkeleyDB::Error;
my $txn = $env->txn_begin;
my $db = BerkeleyDB::Btree->new(-Filename => 'sessions.db', -Flags => DB_CREATE, -Env => $env, -Txn => $txn) or die $BerkeleyDB::Error;
$txn->txn_commit;
for (my $n = 0; $n < 60000; $n += $batch) {
    $txn = $env->txn_begin;
    $db->Txn($txn);
    for my $i ($n .. $n + $batch - 1) {
        $db->db_put(sprintf("session%06d", $i * 7919 % 100003), "user" . $i % 300 . " seen " . (1700000000 + $i)) == 0 or die $BerkeleyDB::Error;
    }
    $txn->txn_commit;
}
undef $db;
print "60000 sessions\n";
