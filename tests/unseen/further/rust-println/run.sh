./report > report.txt
