exec perl deliver.pl
