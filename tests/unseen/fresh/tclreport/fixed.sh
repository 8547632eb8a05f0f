sed -i /buffering/d report.tcl
exec tclsh report.tcl
