exec clamscan -r -d sig mails
