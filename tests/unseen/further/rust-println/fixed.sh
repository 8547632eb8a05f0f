./report buffered > report.txt
