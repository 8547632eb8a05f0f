exec java -cp /usr/share/java/derby.jar:/usr/share/java/derbytools.jar:/usr/share/java/derbyshared.jar org.apache.derby.tools.ij load.sql > load.log
