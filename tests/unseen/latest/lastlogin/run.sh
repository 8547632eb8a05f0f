exec perl lastlogin.pl lastlog
