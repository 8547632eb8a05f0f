export GOCACHE=$PWD/cache GOFLAGS=-p=1 GOTOOLCHAIN=local GOTELEMETRY=off HOME=$PWD TMPDIR=$PWD
cd hello && go build -o hello . && ./hello
