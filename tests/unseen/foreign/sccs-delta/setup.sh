mkdir SCCS
seq 1 20000 | sed 's/^/parameter /' > plan.txt
/usr/lib/cssc/admin -iplan.txt SCCS/s.plan.txt || sccs admin -iplan.txt plan.txt
rm plan.txt
