# one merged view instead of a prefix for each package
mkdir -p merged/lib merged/include
cp -rs "$PWD"/view/*/lib/. merged/lib/
cp -rs "$PWD"/view/*/include/. merged/include/
exec cmake -S src -B build "-DCMAKE_PREFIX_PATH=$PWD/merged"
