GO111MODULE=off go build -o cachequota main.go
