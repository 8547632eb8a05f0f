// Builds a catalogue of uploads: content type, size and checksum of every file.
package main

import (
	"bufio"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
)

func contentType(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.ErrUnexpectedEOF {
		return "", err
	}
	return http.DetectContentType(head[:n]), nil
}

func checksum(path string) (uint32, int, error) {
	b, err := os.ReadFile(path)
	return crc32.ChecksumIEEE(b), len(b), err
}

func main() {
	out, err := os.Create("catalogue.txt")
	if err != nil {
		log.Fatal(err)
	}
	w := bufio.NewWriterSize(out, 64<<10)
	files, _ := filepath.Glob("uploads/*")
	for _, p := range files {
		t, err := contentType(p)
		if err != nil {
			log.Fatal(err)
		}
		sum, n, err := checksum(p)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Fprintf(w, "%s %s %d %08x\n", p, t, n, sum)
	}
	if err := w.Flush(); err != nil {
		log.Fatal(err)
	}
	if err := out.Close(); err != nil {
		log.Fatal(err)
	}
}
