scons -Q -j 2 > build.log && scons -Q > nothing.log && tail -n 1 nothing.log
