GO111MODULE=off GOPATH=/usr/share/gocode /usr/bin/go build -o accept accept.go
