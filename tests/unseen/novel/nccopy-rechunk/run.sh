exec nccopy -c time/365,lat/10,lon/10 sst.nc series.nc
