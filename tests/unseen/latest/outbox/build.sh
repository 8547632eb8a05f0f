GO111MODULE=off go build -o outbox main.go
