GO111MODULE=off go build -o prog main.go
