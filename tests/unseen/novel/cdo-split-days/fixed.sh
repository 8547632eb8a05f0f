cdo -s splitsel,1 year.nc day || exit 1
ls day*.nc | wc -l
