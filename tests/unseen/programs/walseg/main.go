// Key-value store whose log is cut into segments; a batch of puts is one commit.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log"
	"os"
	"path/filepath"
)

type WAL struct {
	dir  string
	f    *os.File
	size int64
	seq  int
}

const segmentSize = 640 << 10

func (w *WAL) rotate() error {
	if w.f != nil {
		if err := w.f.Close(); err != nil {
			return err
		}
	}
	w.seq++
	f, err := os.OpenFile(filepath.Join(w.dir, fmt.Sprintf("%08d.wal", w.seq)), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	w.f, w.size = f, 0
	return nil
}

func (w *WAL) Commit(batch []byte) error {
	if w.f == nil || w.size+int64(len(batch)) > segmentSize {
		if err := w.rotate(); err != nil {
			return err
		}
	}
	n, err := w.f.Write(batch)
	if err != nil {
		return err
	}
	w.size += int64(n)
	return w.f.Sync()
}

func main() {
	if err := os.MkdirAll("wal", 0o755); err != nil {
		log.Fatal(err)
	}
	w := &WAL{dir: "wal"}
	var buf bytes.Buffer
	for b := 0; b < 350; b++ {
		buf.Reset()
		for r := 0; r < 96; r++ {
			payload := bytes.Repeat([]byte{byte(b), byte(r)}, 128)
			binary.Write(&buf, binary.LittleEndian, uint32(len(payload)))
			binary.Write(&buf, binary.LittleEndian, crc32.ChecksumIEEE(payload))
			buf.Write(payload)
		}
		if err := w.Commit(buf.Bytes()); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("committed", w.seq, "segments")
}
