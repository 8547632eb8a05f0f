# every vendored library has its own entry in the load path
RUBYLIB=
for d in vendor/gem*/lib; do RUBYLIB="$PWD/$d:$RUBYLIB"; done
export RUBYLIB
exec ruby --disable-gems app.rb
