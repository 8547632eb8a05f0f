// Incremental build: looks once at every source and object, compresses what is out of date.
package main

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func times(dir string) map[string]time.Time {
	m := map[string]time.Time{}
	es, err := os.ReadDir(dir)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range es {
		i, err := e.Info()
		if err != nil {
			log.Fatal(err)
		}
		m[e.Name()] = i.ModTime()
	}
	return m
}

func build(src, dst string) error {
	b, err := os.ReadFile(src)
	if err != nil {
		return err
	}
	out, err := os.Create(dst)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(out, 64<<10)
	z, _ := gzip.NewWriterLevel(w, 9)
	if _, err := z.Write(b); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return out.Close()
}

func main() {
	src, obj := times("src"), times("obj")
	n := 0
	for name, t := range src {
		o := strings.TrimSuffix(name, ".txt") + ".gz"
		if ot, ok := obj[o]; ok && !ot.Before(t) {
			continue
		}
		if err := build(filepath.Join("src", name), filepath.Join("obj", o)); err != nil {
			log.Fatal(err)
		}
		n++
	}
	fmt.Println(n, "built of", len(src))
}
