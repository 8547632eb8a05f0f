GO111MODULE=off go build -o ledgerd main.go
