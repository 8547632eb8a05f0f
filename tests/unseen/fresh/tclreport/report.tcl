# Writes the statement of each account; the file can be followed while it is written.
set out [open statement.txt w]
fconfigure $out -buffering none
for {set n 0} {$n < 250000} {incr n} {
    set amount [expr {$n * 7919 % 100000}]
    puts $out [format "%06d %8.2f %s" $n [expr {$amount / 100.0}] [expr {$amount % 3 ? "debit" : "credit"}]]
}
close $out
puts [file size statement.txt]
