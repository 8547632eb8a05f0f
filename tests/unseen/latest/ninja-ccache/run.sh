export CCACHE_DIR=$PWD/ccache
ninja -j 3 | tail -n 1
echo 'int f0(int n) { return -n; }' > src/f0.c
ninja -j 3 | tail -n 1
ninja -j 3 | tail -n 1
