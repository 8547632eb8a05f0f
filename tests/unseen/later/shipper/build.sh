GO111MODULE=off go build -o shipper main.go
