exec dar -Q -q -N -c full -R home -zlz4 -s 60M
