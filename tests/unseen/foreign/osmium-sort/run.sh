osmium sort --no-progress -o town.osm.pbf town.osm
osmium extract --no-progress -b 7.2,50.2,7.6,50.6 -o part.osm.pbf town.osm.pbf
osmium fileinfo -e --no-progress -g data.count.nodes part.osm.pbf
