exec perl mailing.pl
