seq 1 500000 | sed 's/.*/insert into t values (&, "row & of the table");/' > part.sql
