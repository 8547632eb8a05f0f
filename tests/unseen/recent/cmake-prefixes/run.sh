exec cmake -S src -B build "-DCMAKE_PREFIX_PATH=$(cat prefixes)"
