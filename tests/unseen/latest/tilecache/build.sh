GO111MODULE=off go build -o tilecache main.go
