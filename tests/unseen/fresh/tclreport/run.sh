exec tclsh report.tcl
