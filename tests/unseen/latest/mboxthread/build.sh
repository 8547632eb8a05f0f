GO111MODULE=off go build -o mboxthread main.go
