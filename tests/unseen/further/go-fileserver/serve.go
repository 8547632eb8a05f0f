// Serves the folder "files" on a port of this machine.
package main

import (
	"log"
	"net/http"
)

func main() {
	http.Handle("/", http.FileServer(http.Dir("files")))
	log.Fatal(http.ListenAndServe("127.0.0.1:18976", nil))
}
