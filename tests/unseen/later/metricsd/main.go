// Keeps counters of many series in one file: a slot of 16 bytes for each series, durable every few samples.
package main

import (
	"encoding/binary"
	"fmt"
	"math/rand"
	"os"
)

const (
	series = 1 << 22
	slot   = 16
	batch  = 64
)

type store struct {
	f       *os.File
	pending int
}

func open(name string) (*store, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &store{f: f}, nil
}

func (s *store) add(id uint32, value uint64, at int64) error {
	var b [slot]byte
	binary.LittleEndian.PutUint64(b[:], value)
	binary.LittleEndian.PutUint64(b[8:], uint64(at))
	if _, err := s.f.WriteAt(b[:], int64(id)*slot); err != nil {
		return err
	}
	if s.pending++; s.pending == batch {
		s.pending = 0
		return s.f.Sync()
	}
	return nil
}

func main() {
	s, err := open("series.dat")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	r := rand.New(rand.NewSource(4))
	for i := 0; i < 600*batch; i++ {
		if err := s.add(uint32(r.Intn(series)), r.Uint64(), int64(i)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if err := s.f.Sync(); err != nil {
		os.Exit(1)
	}
	s.f.Close()
}
