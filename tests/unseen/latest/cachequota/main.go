// Cache of rendered tiles with a limit for its size.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
)

const limit = 64 << 20

var errFull = errors.New("cache is full")

type cache struct{ dir string }

func (c cache) size() (int64, error) {
	var sum int64
	err := filepath.WalkDir(c.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		sum += info.Size()
		return nil
	})
	return sum, err
}

func (c cache) put(key int, tile []byte) error {
	used, err := c.size()
	if err != nil {
		return err
	}
	if used+int64(len(tile)) > limit {
		return errFull
	}
	name := filepath.Join(c.dir, fmt.Sprintf("%02x", key%64), fmt.Sprintf("tile%d", key))
	return os.WriteFile(name, tile, 0644)
}

func main() {
	c := cache{os.Args[1]}
	for key := 0; key < 120; key++ {
		tile := make([]byte, 3000+key*10)
		for i := range tile {
			tile[i] = byte(i * key)
		}
		if err := c.put(key, tile); err != nil {
			log.Fatal(err)
		}
	}
	used, _ := c.size()
	fmt.Println(used, "bytes cached")
}
