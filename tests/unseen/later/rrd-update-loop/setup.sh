rrdtool create load.rrd --start 1700000000 --step 10 DS:load:GAUGE:20:0:U RRA:AVERAGE:0.5:1:5000 RRA:MAX:0.5:6:5000
