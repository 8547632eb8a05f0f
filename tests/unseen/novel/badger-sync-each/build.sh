GO111MODULE=off GOPATH=/usr/share/gocode go build -o events events.go
