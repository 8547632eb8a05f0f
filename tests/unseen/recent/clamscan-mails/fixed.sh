exec clamscan -r -d sig --tempdir=/dev/shm mails
