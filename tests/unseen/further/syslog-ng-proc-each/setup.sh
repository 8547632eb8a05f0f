cat > ng.conf <<C
@version: 3.38
options { stats-freq(0); };
source s { unix-dgram("$PWD/log.sock"); };
destination d { file("$PWD/all.log" flush-lines(100)); };
log { source(s); destination(d); flags(flow-control); };
C
