exec ./mboxthread mbox threads
