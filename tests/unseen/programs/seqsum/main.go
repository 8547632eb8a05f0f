// Checksums of the volumes of an archive.
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"os"
)

func main() {
	buf := make([]byte, 1<<20)
	for i := 0; i < 4; i++ {
		name := fmt.Sprintf("vol%d.bin", i)
		f, err := os.Open(name)
		if err != nil {
			log.Fatal(err)
		}
		h := sha256.New()
		if _, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{f}, buf); err != nil {
			log.Fatal(err)
		}
		f.Close()
		fmt.Printf("%x  %s\n", h.Sum(nil), name)
	}
}
