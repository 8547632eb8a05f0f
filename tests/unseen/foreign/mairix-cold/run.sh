mairix -f mairixrc
