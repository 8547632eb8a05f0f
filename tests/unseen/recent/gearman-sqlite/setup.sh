seq 240 | sed 's/.*/picture&.jpg 320x240/' > joblist
