GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$PWD/.cache go build -o sessions main.go && rm -rf .cache
