GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$PWD/.cache go build -o queue main.go && rm -rf .cache
