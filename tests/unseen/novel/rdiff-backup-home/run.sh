rdiff-backup backup home copy && ls copy/rdiff-backup-data | wc -l
