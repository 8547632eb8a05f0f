GO111MODULE=off go build -o ticks ticks.go
