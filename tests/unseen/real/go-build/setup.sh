export GOCACHE=$PWD/cache GOFLAGS=-p=1 GOTOOLCHAIN=local GOTELEMETRY=off HOME=$PWD
mkdir hello; cd hello
printf 'module hello\ngo 1.20\n' > go.mod
printf 'package main\nimport "fmt"\nfunc main() { fmt.Println("hello") }\n' > main.go
go build -o hello . && printf 'package main\nimport "fmt"\nfunc main() { fmt.Println("hello again") }\n' > main.go
