GO111MODULE=off /usr/bin/go build -o serve serve.go
