exec perl app.pl
