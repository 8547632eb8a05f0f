GO111MODULE=off GOCACHE=$PWD/.cache go build -o notes-export main.go && rm -rf .cache
