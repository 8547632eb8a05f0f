mkdir src
P=
for n in $(seq 420); do
  d=$PWD/view/package$n
  mkdir -p $d/lib $d/include/package$n $d/bin
  : > $d/lib/libpackage$n.a; : > $d/include/package$n/api.h
  P="$P;$d"
done
echo "$P" | sed 's/^;//' > prefixes
{
  echo 'cmake_minimum_required(VERSION 3.18)'
  echo 'project(coupler NONE)'
  for n in $(seq 2 2 420); do
    echo "find_library(LIB$n package$n)"
    echo "find_path(INC$n package$n/api.h)"
  done
} > src/CMakeLists.txt
