ncra -O day*.nc mean.nc && ls -l mean.nc
