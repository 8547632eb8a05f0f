// Cache of rendered tiles with a limit for its size, which is summed up once at the start.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
)

const limit = 256 << 20

type cache struct {
	dir  string
	used int64
}

func open(dir string) (*cache, error) {
	c := &cache{dir: dir}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			c.used += info.Size()
		}
		return err
	})
	return c, err
}

func (c *cache) put(key int, tile []byte) error {
	if c.used+int64(len(tile)) > limit {
		return errors.New("cache is full")
	}
	name := filepath.Join(c.dir, fmt.Sprintf("%02x", key%64), fmt.Sprintf("tile%d", key))
	if err := os.WriteFile(name, tile, 0644); err != nil {
		return err
	}
	c.used += int64(len(tile))
	return nil
}

func render(key int) []byte {
	tile := make([]byte, 90000+key*10)
	x := uint32(key)*2654435761 + 1
	for i := range tile {
		for round := 0; round < 12; round++ {
			x ^= x << 13
			x ^= x >> 17
			x ^= x << 5
		}
		tile[i] = byte(x)
	}
	return tile
}

func main() {
	c, err := open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	for key := 0; key < 1200; key++ {
		if err := c.put(key, render(key)); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(c.used, "bytes cached")
}
