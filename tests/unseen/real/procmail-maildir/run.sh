formail -s procmail -m rc < mbox; ls md/new | wc -l; [ $(ls md/new | wc -l) -eq 500 ]
