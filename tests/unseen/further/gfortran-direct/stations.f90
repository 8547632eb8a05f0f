! The values of some stations, in the order in which they are asked for.
program stations
  implicit none
  integer :: n, r
  real(8) :: v(8), total
  open (unit=10, file='stations.dat', access='direct', form='unformatted', recl=64, status='old', action='read')
  total = 0
  r = 1
  do n = 1, 30000
    r = mod(r * 16807, 600000) + 1
    read (10, rec=r) v
    total = total + v(1)
  end do
  print '(f20.4)', total
end program
