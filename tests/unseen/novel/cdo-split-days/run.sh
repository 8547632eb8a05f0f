for n in $(seq 200); do
  cdo -s seltimestep,$n year.nc day$n.nc || exit 1
done
ls day*.nc | wc -l
