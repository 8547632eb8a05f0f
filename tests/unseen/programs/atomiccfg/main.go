// Configuration daemon: every accepted change is put in place atomically and durably.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
)

func writeAtomic(path string, data []byte) error {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, ".config-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if _, err := tmp.Write(data); err != nil {
		return err
	}
	if err := tmp.Sync(); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func main() {
	if err := os.MkdirAll("etc", 0o755); err != nil {
		log.Fatal(err)
	}
	cfg := map[string]string{}
	for change := 0; change < 110; change++ {
		for i := 0; i < 20; i++ {
			cfg[fmt.Sprintf("section%d.key%d", change, i)] = fmt.Sprint(change * i)
		}
		b, err := json.MarshalIndent(cfg, "", " ")
		if err != nil {
			log.Fatal(err)
		}
		if err := writeAtomic("etc/config.json", b); err != nil {
			log.Fatal(err)
		}
	}
}
