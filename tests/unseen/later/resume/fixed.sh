sed 's/^    save_state();$/    save_state() if $done % 200 == 0;/' fetch.pl > fixed.pl
exec perl fixed.pl
