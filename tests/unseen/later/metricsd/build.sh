GO111MODULE=off go build -o metricsd main.go
