GO111MODULE=off go build -o segstore main.go
